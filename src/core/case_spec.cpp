// SPDX-License-Identifier: Apache-2.0
#include "core/case_spec.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "common/outside.hpp"

namespace strata::core {
namespace {

using outside::Fields;
using outside::Json;

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

bool is_null(Fields& fields, const char* key) {
  const Json* value = fields.find(key);
  return !value || value->is_null();
}

std::optional<double> number_or_null(Fields& fields, const char* key, double most) {
  if (is_null(fields, key)) return std::nullopt;
  return fields.number(key, -most, most);
}

bool is_real(const Input& input) {
  return input.dtype.find("float") != std::string::npos;
}

std::string text_or_null(Fields& fields, const char* key) {
  return is_null(fields, key) ? std::string() : fields.text(key);
}

Result<Input> read_input(const Json& value, const std::string& where, const std::string& hint) {
  Fields fields(value, where, hint);
  Input input;
  input.name = fields.text("name", "");
  input.dtype = fields.text("dtype", input.dtype);
  input.keyword = fields.flag("keyword", false);
  input.shape = fields.integers("shape", std::nullopt, 0, outside::most_whole);
  const double most = is_real(input) ? HUGE_VAL : static_cast<double>(outside::most_whole);
  input.low = number_or_null(fields, "low", most);
  input.high = number_or_null(fields, "high", most);
  if (fields.error()) return tl::unexpected(*fields.error());
  return input;
}

Result<std::optional<OpenBatch>> read_open_batch(const Json& value, const std::string& where, const std::string& hint) {
  if (value.is_null()) return std::nullopt;
  Fields range(value, where, hint);
  OpenBatch open{.low = range.integer("low", 1, outside::most_whole),
                 .high = range.integer("high", 1, outside::most_whole),
                 .sizes = {}};
  open.sizes = range.integers("sizes", std::nullopt, 1, outside::most_whole);
  if (range.error()) return tl::unexpected(*range.error());
  return open;
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

// Where inputs come from, in one word.
std::string data_of(const CaseSpec& spec) {
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  if (spec.synthetic) return "synthetic";
  if (!spec.input_from.empty()) return "folder:" + name(spec.input_from);
  return spec.input_file.empty() ? std::string() : "file:" + name(spec.input_file);
}

void read_single(Fields& fields, CaseSpec& spec) {
  spec.model = text_or_null(fields, "model");
  spec.mode = one_of(fields, "mode", all_modes);
  if (!is_null(fields, "batch")) spec.batch = fields.integer("batch", 1, outside::most_whole);
  if (!is_null(fields, "size"))
    if (const auto size = fields.integers("size", 2, 1, outside::most_whole); size.size() == 2)
      spec.size = std::pair(size[0], size[1]);
  spec.precision = one_of(fields, "precision", all_precisions);
  spec.device = one_of(fields, "device", {Device::cpu, Device::cuda});
  spec.threads = static_cast<int>(fields.integer("threads", 1, 4096, spec.threads));
  spec.loss = text_or_null(fields, "loss");
  spec.weights = text_or_null(fields, "weights");
  spec.input_from = text_or_null(fields, "input_from");
  spec.input_file = text_or_null(fields, "input_file");
  spec.synthetic = fields.flag("synthetic", false);
  spec.seed = fields.integer("seed", -outside::most_whole, outside::most_whole, spec.seed);
  spec.ring = static_cast<int>(fields.integer("ring", 1, 4096, spec.ring));
  spec.generic_sets = static_cast<int>(fields.integer("generic_sets", 0, 1000, spec.generic_sets));
  spec.deep = fields.flag("deep", false);
  spec.light = fields.flag("light", false);
  spec.all_runs = fields.flag("all_runs", false);
}

}  // namespace

Json to_json(const Input& input) {
  const auto end = [&](const std::optional<double>& value) {
    return !value ? Json() : is_real(input) ? Json(*value) : Json(static_cast<std::int64_t>(*value));
  };
  return {{"name", input.name},   {"dtype", input.dtype},  {"keyword", input.keyword},
          {"shape", input.shape}, {"low", end(input.low)}, {"high", end(input.high)}};
}

Json to_json(const CaseSpec& spec) {
  Json inputs = Json::array();
  for (const auto& input : spec.inputs) inputs.push_back(to_json(input));
  const auto& open = spec.open_batch;
  return {{"model", spec.model},
          {"mode", name_of(spec.mode)},
          {"batch", spec.batch ? Json(*spec.batch) : Json()},
          {"size", spec.size ? Json{spec.size->first, spec.size->second} : Json()},
          {"inputs", std::move(inputs)},
          {"precision", name_of(spec.precision)},
          {"device", name_of(spec.device)},
          {"threads", spec.threads},
          {"optimiser", spec.optimiser ? to_json(*spec.optimiser) : Json()},
          {"loss", or_null(spec.loss)},
          {"seed", spec.seed},
          {"weights", or_null(spec.weights)},
          {"input_from", or_null(spec.input_from)},
          {"input_file", or_null(spec.input_file)},
          {"synthetic", spec.synthetic},
          {"ring", spec.ring},
          {"generic_sets", spec.generic_sets},
          {"deep", spec.deep},
          {"light", spec.light},
          {"all_runs", spec.all_runs},
          {"dynamic", open ? Json{{"low", open->low}, {"high", open->high}, {"sizes", open->sizes}} : Json()}};
}

Result<CaseSpec> read_spec(const Json& value, const std::string& where, const std::string& hint) {
  Fields fields(value, where, hint);
  CaseSpec spec;
  read_single(fields, spec);
  if (fields.error()) return tl::unexpected(*fields.error());
  const Json& inputs = outside::field(value, "inputs");
  if (!inputs.is_null()) fields.array("inputs");
  if (fields.error()) return tl::unexpected(*fields.error());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto input = STRATA_TRY(read_input(inputs[i], fmt::format("{}.inputs[{}]", where, i), hint));
    spec.inputs.push_back(std::move(input));
  }
  if (const Json& optimiser = outside::field(value, "optimiser"); !optimiser.is_null()) {
    spec.optimiser = STRATA_TRY(read_optimiser(optimiser, where + ".optimiser"));
  }
  spec.open_batch = STRATA_TRY(read_open_batch(outside::field(value, "dynamic"), where + ".dynamic", hint));
  return spec;
}

std::string size_words(const std::pair<std::int64_t, std::int64_t>& size) {
  return size.first == size.second ? std::to_string(size.first) : fmt::format("{}x{}", size.first, size.second);
}

Case question_of(const CaseSpec& spec, std::string model) {
  Case question{.model = std::move(model),
                .mode = spec.mode,
                .batch = spec.batch.value_or(1),
                .inputs = spec.inputs,
                .precision = spec.precision,
                .device = spec.device,
                .threads = spec.threads,
                .recipe = {},
                .data = data_of(spec),
                .weights = std::filesystem::path(spec.weights).filename().string(),
                .seed = spec.seed,
                .open_batch = spec.open_batch};
  if (spec.mode != Mode::train) return question;
  question.recipe.emplace();
  if (spec.optimiser) question.recipe->optimiser = *spec.optimiser;
  if (!spec.loss.empty()) question.recipe->loss = std::filesystem::path(spec.loss).filename().string();
  return question;
}

}  // namespace strata::core
