// SPDX-License-Identifier: Apache-2.0
#include "requests/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/case.hpp"

namespace strata::requests {
namespace {

std::string input_words(const core::Input& input) {
  auto text =
      fmt::format("{}{}{}:{}", input.name, input.name.empty() ? "" : "=", input.dtype, fmt::join(input.shape, "x"));
  if (input.low && input.high) text += fmt::format(":{}..{}", *input.low, *input.high);
  return text;
}

// The options that say which network it is and what goes in, without those that a program does not have.
plan::Options network_of(const core::CaseSpec& spec) {
  plan::Options options;
  options.model = spec.model;
  if (spec.batch) options.batches = {static_cast<int>(*spec.batch)};
  if (spec.size) options.size = core::size_words(*spec.size);
  for (const auto& input : spec.inputs) options.inputs.push_back(input_words(input));
  options.weights = spec.weights;
  options.input_from = spec.input_from;
  options.input_file = spec.input_file;
  options.synthetic = spec.synthetic;
  options.threads = spec.threads;
  options.seed = spec.seed;
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

std::optional<Request> request_of_run(const store::Settings& settings) {
  if (!settings.request.is_object()) return std::nullopt;
  auto request = read_request(settings.request);
  return request ? std::optional(std::move(*request)) : std::nullopt;
}

plan::Options options_of(const core::CaseSpec& spec) {
  auto options = network_of(spec);
  options.thread_counts = {spec.threads};
  options.mode = name_of(spec.mode);
  if (spec.optimiser) options.optimiser = core::words(*spec.optimiser);
  options.loss = spec.loss;
  options.device = name_of(spec.device);
  options.precision = name_of(spec.precision);
  if (spec.generic_sets > 2) options.weight_sets = spec.generic_sets;
  return options;
}

CompareRequest of_case(const plan::Options& asked, const core::CaseSpec& spec, std::vector<std::string> levels) {
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
  options.profile = asked.profile;
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

std::string generate_command(const core::CaseSpec& spec, const std::string& model, const Program& program,
                             const std::string& python) {
  GenerateRequest request;
  request.train = spec.mode == core::Mode::train;
  request.options = network_of(spec);
  request.options.precision = name_of(spec.precision);
  const auto known = generated_precisions(program.target, request.train);
  if (program.target.empty() || std::find(known.begin(), known.end(), request.options.precision) == known.end())
    return "";
  request.options.loss = spec.loss;
  request.target = program.target;
  request.output = folder_of(model, program.level);
  request.python = python;
  return command_of(request) + (program.options.empty() ? "" : " " + program.options);
}

std::string export_command(const core::CaseSpec& spec, const std::string& model, const std::string& level,
                           const Named& named) {
  ExportRequest request;
  request.options = options_of(spec);
  request.level = level;
  request.output = folder_of(model, level);
  request.python = named.python;
  return command_of(request, named.store);
}

}  // namespace strata::requests
