// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "common/outside.hpp"
#include "core/case.hpp"

namespace strata::core {
namespace {

using outside::Fields;
using outside::Json;

constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;  // whole numbers that JSON's readers agree on

// One of a few names; the first of them where the field is missing.
template <class Enum, std::size_t N>
Enum one_of(Fields& fields, const char* key, const Enum (&allowed)[N]) {
  const auto got = fields.text(key, std::string(name_of(allowed[0])));
  std::string names;
  for (const Enum value : allowed) {
    if (name_of(value) == got) return value;
    names += (names.empty() ? "" : ", ") + std::string(name_of(value));
  }
  fields.complain(key, got, names);
  return allowed[0];
}

std::optional<double> number_or_null(Fields& fields, const char* key) {
  const Json* value = fields.find(key);
  if (!value || value->is_null()) return std::nullopt;
  return fields.number(key, -HUGE_VAL, HUGE_VAL);
}

std::string text_or_null(Fields& fields, const char* key) {
  const Json* value = fields.find(key);
  return !value || value->is_null() ? std::string() : fields.text(key);
}

Result<Input> read_input(const Json& value, const std::string& where) {
  Fields fields(value, where);
  Input input;
  input.name = fields.text("name", "");
  input.dtype = fields.text("dtype", input.dtype);
  input.keyword = fields.flag("keyword", false);
  input.shape = fields.integers("shape", std::nullopt, 0, kMostWhole);
  input.low = number_or_null(fields, "low");
  input.high = number_or_null(fields, "high");
  if (fields.error()) return tl::unexpected(*fields.error());
  return input;
}

Result<Recipe> read_recipe(const Json& fields, const std::string& where) {
  Recipe recipe;
  if (const Json& optimiser = outside::field(fields, "optimiser"); !optimiser.is_null()) {
    recipe.optimiser = STRATA_TRY(read_optimiser(optimiser, where + ": optimiser"));
  }
  recipe.loss = outside::text_or(fields, "loss", recipe.loss);
  if (const Json& about = outside::field(fields, "training"); !about.is_null()) {
    Fields training(about, where + ": training");
    recipe.training = {.epochs = static_cast<int>(training.integer("epochs", 1, 1'000'000)),
                       .init = training.text("init", "torch"),
                       .augment = training.text("augment", ""),
                       .most_images = training.integer("most_images", 0, kMostWhole, 0),
                       .data_sha256 = training.text("data_sha256", "")};
    if (training.error()) return tl::unexpected(*training.error());
  }
  return recipe;
}

// What bundle.json says of where inputs come from, in one word.
std::string data_of(const Json& fields) {
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  if (outside::flag_or(fields, "synthetic", false)) return "synthetic";
  if (const auto folder = outside::text_or(fields, "input_from"); !folder.empty()) return "folder:" + name(folder);
  if (const auto file = outside::text_or(fields, "input_file"); !file.empty()) return "file:" + name(file);
  return {};
}

// What bundle.json's case and to_json() have in common.
Result<Case> read_axes(const Json& value, const std::string& where) {
  Fields fields(value, where);
  Case question;
  question.mode = one_of(fields, "mode", {Mode::infer, Mode::train});
  question.batch = fields.integer("batch", 1, kMostWhole, 1);
  question.precision =
      one_of(fields, "precision", {Precision::fp32, Precision::tf32, Precision::bf16, Precision::amp_bf16});
  question.device = one_of(fields, "device", {Device::cpu, Device::cuda});
  question.threads = static_cast<int>(fields.integer("threads", 1, 4096, 1));
  question.seed = fields.integer("seed", -kMostWhole, kMostWhole, 0);
  question.weights = text_or_null(fields, "weights");
  if (fields.error()) return tl::unexpected(*fields.error());
  const Json& inputs = outside::field(value, "inputs");
  for (std::size_t i = 0; inputs.is_array() && i < inputs.size(); ++i) {
    auto input = STRATA_TRY(read_input(inputs[i], fmt::format("{}: inputs[{}]", where, i)));
    question.inputs.push_back(std::move(input));
  }
  if (question.mode == Mode::train) {
    question.recipe = STRATA_TRY(read_recipe(value, where));
  }
  return question;
}

}  // namespace

Json to_json(const Training& training) {
  return {{"epochs", training.epochs},
          {"init", training.init},
          {"augment", training.augment},
          {"most_images", training.most_images},
          {"data_sha256", training.data_sha256}};
}

Result<Case> captured_case(const Json& info, const std::string& where) {
  const Json& fields = outside::field(info, "case");
  auto question = read_axes(fields, where + ": case");
  if (!question) return question;
  question->model = outside::text_or(outside::field(info, "model"), "name", outside::text_or(fields, "model"));
  question->data = data_of(fields);
  if (const Json& range = outside::field(fields, "dynamic"); !range.is_null()) {
    Fields open(range, where + ": case.dynamic");
    question->open_batch = {.low = open.integer("low", 1, kMostWhole),
                            .high = open.integer("high", 1, kMostWhole),
                            .sizes = open.integers("sizes", std::nullopt, 1, kMostWhole)};
    if (open.error()) return tl::unexpected(*open.error());
  }
  question->weights = std::filesystem::path(question->weights).filename().string();
  return question;
}

Result<Case> read_case(const Json& value, const std::string& where) {
  auto question = read_axes(value, where);
  if (!question) return question;
  Fields fields(value, where);
  question->model = fields.text("model");
  question->data = fields.text("data", "");
  if (fields.error()) return tl::unexpected(*fields.error());
  return question;
}

Json to_json(const Case& question) {
  Json inputs = Json::array();
  for (const auto& input : question.inputs)
    inputs.push_back({{"name", input.name},
                      {"dtype", input.dtype},
                      {"keyword", input.keyword},
                      {"shape", input.shape},
                      {"low", input.low ? Json(*input.low) : Json()},
                      {"high", input.high ? Json(*input.high) : Json()}});
  return {{"model", question.model},
          {"mode", name_of(question.mode)},
          {"batch", question.batch},
          {"inputs", std::move(inputs)},
          {"precision", name_of(question.precision)},
          {"device", name_of(question.device)},
          {"threads", question.threads},
          {"optimiser", question.recipe ? to_json(question.recipe->optimiser) : Json()},
          {"loss", question.recipe ? Json(question.recipe->loss) : Json()},
          {"training", question.recipe && question.recipe->training ? to_json(*question.recipe->training) : Json()},
          {"data", question.data},
          {"weights", question.weights},
          {"seed", question.seed}};
}

}  // namespace strata::core
