// SPDX-License-Identifier: Apache-2.0
#include "plan/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <vector>

#include "plan/optimiser_spec.hpp"

namespace strata::plan {
namespace {

std::string input_words(const nlohmann::json& input) {
  const auto name = input.value("name", "");
  std::string text = (name.empty() ? "" : name + "=") + input.value("dtype", "float32") + ":" +
                     fmt::format("{}", fmt::join(input.value("shape", std::vector<std::int64_t>{}), "x"));
  if (input.contains("low") && input["low"].is_number())
    text += fmt::format(":{}..{}", input["low"].get<std::int64_t>(), input.value("high", std::int64_t{0}));
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

}  // namespace

std::string quoted(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:=,@%+") ==
          std::string::npos)
    return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string case_words(const nlohmann::json& spec) {
  const auto text = [&](const char* field) {
    return spec.contains(field) && spec[field].is_string() ? spec[field].get<std::string>() : std::string();
  };
  const auto number = [&](const char* field) {
    return spec.contains(field) && spec[field].is_number_integer() ? spec[field].get<std::int64_t>() : std::int64_t{0};
  };
  std::string words = quoted(text("model"));
  if (number("batch") > 0) words += fmt::format(" --batch {}", number("batch"));
  if (spec.contains("inputs") && spec["inputs"].is_array())
    for (const auto& input : spec["inputs"]) words += " --input " + quoted(input_words(input));
  if (!text("weights").empty()) words += " --weights " + quoted(text("weights"));
  if (!text("input_from").empty()) words += " --input-from " + quoted(text("input_from"));
  if (spec.contains("synthetic") && spec["synthetic"] == true) words += " --synthetic";
  if (text("mode") == "train") {
    words += " --mode train";
    if (const auto optimiser =
            spec.contains("optimiser") && spec["optimiser"].is_object() ? optimiser_words(spec["optimiser"]) : "";
        !optimiser.empty())
      words += " --optimiser " + optimiser;
    if (!text("loss").empty()) words += " --loss " + text("loss");
  }
  if (number("threads") > 0) words += fmt::format(" --threads {}", number("threads"));
  if (!text("device").empty() && text("device") != "cpu") words += " --device " + text("device");
  if (!text("maths").empty() && text("maths") != "fp32") words += " --maths " + text("maths");
  if (number("generic_sets") > 2) words += fmt::format(" --weight-sets {}", number("generic_sets"));
  if (number("seed") != 0) words += fmt::format(" --seed {}", number("seed"));
  return words;
}

std::string export_command(const nlohmann::json& spec, const std::string& model, const std::string& level,
                           const std::string& measured_by) {
  std::string folder;
  for (const char c : model)
    folder += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-' ? c : '-';
  return fmt::format("./strata export {} --level {} -o {}-{}{}{}", case_words(spec), level, folder, level,
                     option_of(measured_by, "--store"), option_of(measured_by, "--python"));
}

}  // namespace strata::plan
