// SPDX-License-Identifier: Apache-2.0
#include "requests/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "common/outside.hpp"
#include "core/case.hpp"

namespace strata::requests {
namespace {

std::string input_words(const nlohmann::json& input) {
  const auto name = outside::text_or(input, "name");
  std::vector<std::int64_t> shape;
  for (const auto& extent : outside::field(input, "shape"))
    if (const auto size = outside::as_integer(extent)) shape.push_back(*size);
  std::string text = (name.empty() ? "" : name + "=") + outside::text_or(input, "dtype", "float32") + ":" +
                     fmt::format("{}", fmt::join(shape, "x"));
  const auto number = [](const nlohmann::json& value) {
    return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
  };
  const auto &low = outside::field(input, "low"), &high = outside::field(input, "high");
  if (low.is_number() && high.is_number()) text += ":" + number(low) + ".." + number(high);
  return text;
}

std::string text_of(const nlohmann::json& spec, const char* field) {
  return spec.contains(field) && spec[field].is_string() ? spec[field].get<std::string>() : std::string();
}

std::int64_t number_of(const nlohmann::json& spec, const char* field) {
  return spec.contains(field) && spec[field].is_number_integer() ? spec[field].get<std::int64_t>() : std::int64_t{0};
}

std::string size_words(const nlohmann::json& spec) {
  const auto& size = outside::field(spec, "size");
  if (!size.is_array() || size.size() != 2) return "";
  const auto height = outside::as_integer(size[0]).value_or(0), width = outside::as_integer(size[1]).value_or(0);
  return height == width ? std::to_string(height) : fmt::format("{}x{}", height, width);
}

// The options that say which network it is and what goes in, without those that a program does not have.
plan::Options network_of(const nlohmann::json& spec) {
  plan::Options options;
  options.model = text_of(spec, "model");
  if (number_of(spec, "batch") > 0) options.batches = {static_cast<int>(number_of(spec, "batch"))};
  options.size = size_words(spec);
  for (const auto& input : outside::field(spec, "inputs")) options.inputs.push_back(input_words(input));
  options.weights = text_of(spec, "weights");
  options.input_from = text_of(spec, "input_from");
  options.input_file = text_of(spec, "input_file");
  options.synthetic = outside::flag_or(spec, "synthetic", false);
  options.threads = static_cast<int>(number_of(spec, "threads"));
  options.seed = number_of(spec, "seed");
  return options;
}

// A folder's name that a shell takes as it is.
std::string folder_of(const std::string& model, const std::string& level) {
  std::string folder;
  for (const char c : model)
    folder += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-' ? c : '-';
  return folder + "-" + level;
}

}  // namespace

std::optional<Request> request_of_run(const nlohmann::json& settings) {
  const auto& stored = outside::field(settings, "request");
  if (!stored.is_object()) return std::nullopt;
  auto request = read_request(stored);
  return request ? std::optional(std::move(*request)) : std::nullopt;
}

plan::Options options_of(const nlohmann::json& spec) {
  auto options = network_of(spec);
  if (options.threads > 0) options.thread_counts = {options.threads};
  if (text_of(spec, "mode") == "train") {
    options.mode = "train";
    if (const auto optimiser = core::read_optimiser(outside::field(spec, "optimiser"), "optimiser"))
      options.optimiser = core::words(*optimiser);
    options.loss = text_of(spec, "loss");
  }
  if (const auto device = text_of(spec, "device"); !device.empty()) options.device = device;
  if (const auto precision = text_of(spec, "precision"); !precision.empty()) options.precision = precision;
  if (const auto sets = number_of(spec, "generic_sets"); sets > 2) options.weight_sets = static_cast<int>(sets);
  return options;
}

CompareRequest of_case(const plan::Options& asked, const nlohmann::json& spec, std::vector<std::string> levels) {
  auto options = options_of(spec);
  options.levels = std::move(levels);
  options.preset = asked.preset;
  options.budget_s = asked.budget_s;
  options.restarts = asked.restarts;
  options.ci_width = asked.ci_width;
  options.order_seed = asked.order_seed;
  options.timeout_s = asked.timeout_s;
  options.memory_limit_gib = asked.memory_limit_gib;
  options.clients = asked.clients;
  options.slo = asked.slo;
  options.dynamic = asked.dynamic;
  options.eval = asked.eval;
  options.deep = asked.deep;
  options.allow_debug = asked.allow_debug;
  options.max_megapixels = asked.max_megapixels;
  options.max_expansion = asked.max_expansion;
  options.environments = asked.environments;
  return {.options = std::move(options), .python = {}};
}

std::vector<std::string> generated_precisions(const std::string& target, bool train) {
  if (target == "libtorch") return train ? std::vector<std::string>{} : std::vector<std::string>{"fp32"};
  std::vector<std::string> known{"fp32"};
  if (target == "cuda") known.emplace_back("tf32");
  if (!train) known.emplace_back("bf16");
  known.emplace_back("amp-bf16");
  return known;
}

std::string generate_command(const nlohmann::json& spec, const std::string& model, const Program& program,
                             const std::string& python) {
  GenerateRequest request;
  request.train = text_of(spec, "mode") == "train";
  request.options = network_of(spec);
  if (const auto precision = text_of(spec, "precision"); !precision.empty()) request.options.precision = precision;
  const auto known = generated_precisions(program.target, request.train);
  if (program.target.empty() || std::find(known.begin(), known.end(), request.options.precision) == known.end())
    return "";
  if (request.train) request.options.loss = text_of(spec, "loss");
  request.target = program.target;
  request.output = folder_of(model, program.level);
  request.python = python;
  return command_of(request) + (program.options.empty() ? "" : " " + program.options);
}

std::string export_command(const nlohmann::json& spec, const std::string& model, const std::string& level,
                           const Named& named) {
  ExportRequest request;
  request.options = options_of(spec);
  request.level = level;
  request.output = folder_of(model, level);
  request.python = named.python;
  return command_of(request, named.store);
}

}  // namespace strata::requests
