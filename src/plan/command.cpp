// SPDX-License-Identifier: Apache-2.0
#include "plan/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "common/escape.hpp"
#include "common/outside.hpp"
#include "core/case.hpp"

namespace strata::plan {
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

// " --store '/a b'" if a command as `quoted` writes it names the option; empty if not.
std::string option_of(const std::string& command, const std::string& option) {
  const auto begin = command.find(" " + option + " ");
  if (begin == std::string::npos) return {};
  auto end = begin + option.size() + 2;
  for (bool open = false; end < command.size() && (open || command[end] != ' '); ++end)
    open = open != (command[end] == '\'');
  return command.substr(begin, end - begin);
}

std::string text_of(const nlohmann::json& spec, const char* field) {
  return spec.contains(field) && spec[field].is_string() ? spec[field].get<std::string>() : std::string();
}

std::int64_t number_of(const nlohmann::json& spec, const char* field) {
  return spec.contains(field) && spec[field].is_number_integer() ? spec[field].get<std::int64_t>() : std::int64_t{0};
}

// What every command that takes a network is told of it: model, batch, inputs, weights.
std::string network_words(const nlohmann::json& spec) {
  std::string words = quoted(text_of(spec, "model"));
  if (number_of(spec, "batch") > 0) words += fmt::format(" --batch {}", number_of(spec, "batch"));
  if (const auto& size = outside::field(spec, "size"); size.is_array() && size.size() == 2) {
    const auto height = outside::as_integer(size[0]).value_or(0), width = outside::as_integer(size[1]).value_or(0);
    words += height == width ? fmt::format(" --size {}", height) : fmt::format(" --size {}x{}", height, width);
  }
  if (spec.contains("inputs") && spec["inputs"].is_array())
    for (const auto& input : spec["inputs"]) words += " --input " + quoted(input_words(input));
  if (!text_of(spec, "weights").empty()) words += " --weights " + quoted(text_of(spec, "weights"));
  if (!text_of(spec, "input_from").empty()) words += " --input-from " + quoted(text_of(spec, "input_from"));
  if (!text_of(spec, "input_file").empty()) words += " --inputs " + quoted(text_of(spec, "input_file"));
  if (spec.contains("synthetic") && spec["synthetic"] == true) words += " --synthetic";
  return words;
}

// A folder's name that a shell takes as it is.
std::string folder_of(const std::string& model, const std::string& level) {
  std::string folder;
  for (const char c : model)
    folder += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-' ? c : '-';
  return folder + "-" + level;
}

}  // namespace

std::string quoted(const std::string& word) {
  return escape::shell_word(word);
}

std::string case_words(const nlohmann::json& spec) {
  const auto text = [&](const char* field) { return text_of(spec, field); };
  const auto number = [&](const char* field) { return number_of(spec, field); };
  std::string words = network_words(spec);
  if (text("mode") == "train") {
    words += " --mode train";
    const auto optimiser = core::read_optimiser(outside::field(spec, "optimiser"), "optimiser");
    if (optimiser && !core::words(*optimiser).empty()) words += " --optimiser " + core::words(*optimiser);
    if (!text("loss").empty()) words += " --loss " + text("loss");
  }
  if (number("threads") > 0) words += fmt::format(" --threads {}", number("threads"));
  if (!text("device").empty() && text("device") != "cpu") words += " --device " + text("device");
  if (!text("precision").empty() && text("precision") != "fp32") words += " --precision " + text("precision");
  if (number("generic_sets") > 2) words += fmt::format(" --weight-sets {}", number("generic_sets"));
  if (number("seed") != 0) words += fmt::format(" --seed {}", number("seed"));
  return words;
}

std::string run_words(const Options& options) {
  std::string words;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words += fmt::format(" {} {}", option, quoted(value));
  };
  const auto add_number = [&](const char* option, const auto& value, const char* unit) {
    if (value) words += fmt::format(" {} {}{}", option, *value, unit);
  };
  if (options.preset != Options().preset) add("--preset", options.preset);
  add_number("--budget", options.budget_s, "s");
  add_number("--restarts", options.restarts, "");
  add_number("--ci-width", options.ci_width, "");
  add_number("--order-seed", options.order_seed, "");
  add_number("--timeout", options.timeout_s, "s");
  add_number("--memory-limit", options.memory_limit_gib, "");
  add("--clients", options.clients);
  add("--slo", options.slo);
  add("--dynamic", options.dynamic);
  add("--eval", options.eval);
  if (options.deep) words += " --deep";
  if (options.allow_debug) words += " --allow-debug";
  return words + environment_words(options.environments);
}

std::string with_option(const std::string& command, const std::string& option, const std::string& value) {
  const auto words = " " + option + " " + quoted(value);
  if (const auto before = option_of(command, option); !before.empty()) {
    auto out = command;
    return out.replace(command.find(before), before.size(), words);
  }
  if (const auto begin = command.find(" " + option + "="); begin != std::string::npos) {
    auto out = command;
    return out.replace(begin, std::min(command.find(' ', begin + 1), command.size()) - begin, words);
  }
  return command + words;
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
                             const std::string& measured_by) {
  const bool train = text_of(spec, "mode") == "train";
  const auto precision = text_of(spec, "precision").empty() ? std::string("fp32") : text_of(spec, "precision");
  const auto known = generated_precisions(program.target, train);
  if (program.target.empty() || std::find(known.begin(), known.end(), precision) == known.end()) return "";
  auto words = network_words(spec);
  if (number_of(spec, "threads") > 0) words += fmt::format(" --threads {}", number_of(spec, "threads"));
  if (number_of(spec, "seed") != 0) words += fmt::format(" --seed {}", number_of(spec, "seed"));
  if (program.target != "onednn") words += " --target " + program.target;
  if (precision != "fp32") words += " --precision " + precision;
  if (train) words += " --train";
  if (train && !text_of(spec, "loss").empty()) words += " --loss " + text_of(spec, "loss");
  if (!program.options.empty()) words += " " + program.options;
  return fmt::format("./strata generate {} -o {}{}", words, folder_of(model, program.level),
                     option_of(measured_by, "--python"));
}

std::string export_command(const nlohmann::json& spec, const std::string& model, const std::string& level,
                           const std::string& measured_by) {
  return fmt::format("./strata export {} --level {} -o {}{}{}", case_words(spec), level, folder_of(model, level),
                     option_of(measured_by, "--store"), option_of(measured_by, "--python"));
}

}  // namespace strata::plan
