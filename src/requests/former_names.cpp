// SPDX-License-Identifier: Apache-2.0
#include "requests/former_names.hpp"

#include <cctype>
#include <string_view>

namespace strata::requests {
namespace {

// Whether a value of `precision` is the width of an interval ("1%", "0.01") and no number format ("bf16").
bool is_width(std::string_view value) {
  return !value.empty() && (std::isdigit(static_cast<unsigned char>(value.front())) != 0 || value.front() == '.');
}

// Today's name of an option, without its dashes, by the name and the value that were given.
std::string current_name(const std::string& name, std::string_view value) {
  if (name == "maths") return "precision";
  return name == "precision" && is_width(value) ? "ci-width" : name;
}

}  // namespace

std::vector<std::string> with_current_names(std::vector<std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto& word = words[i];
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    const auto equals = word.find('=');
    const auto name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const std::string joined = equals == std::string::npos ? "" : word.substr(equals);  // "=1%"
    const std::string_view value = !joined.empty()        ? std::string_view(joined).substr(1)
                                   : i + 1 < words.size() ? std::string_view(words[i + 1])
                                                          : std::string_view();
    word = "--" + current_name(name, value) + joined;
  }
  return words;
}

void use_current_names(suite::Suite& suite) {
  const auto rename = [](std::vector<suite::Setting>& settings) {
    for (auto& setting : settings)
      setting.key = current_name(setting.key, setting.values.empty() ? "" : setting.values.front());
  };
  rename(suite.defaults);
  for (auto& entry : suite.entries) rename(entry.settings);
}

}  // namespace strata::requests
