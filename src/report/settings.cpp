// SPDX-License-Identifier: Apache-2.0
#include "report/settings.hpp"

#include <fmt/format.h>

#include "report/format.hpp"

namespace strata::report {
namespace {

void append(std::string& words, const char* between, const std::string& more) {
  if (!more.empty()) words += (words.empty() ? "" : between) + more;
}

// A value's own words; what is empty has none.
std::string words_of(const Json& value, int depth) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return ratio(value.get<double>());
  if (value.is_number()) return value.dump();
  std::string words;
  if (depth > 4) return words;  // nobody reads deeper ones
  if (value.is_array())
    for (const auto& item : value) append(words, "; ", words_of(item, depth + 1));
  if (value.is_object())
    for (const auto& [name, item] : value.items())
      if (const auto own = words_of(item, depth + 1); !own.empty()) append(words, ", ", spaced(name) + " " + own);
  return words;
}

std::string shown_setting(const Json& settings, const char* name) {
  const auto it = settings.is_object() ? settings.find(name) : settings.end();
  if (!settings.is_object() || it == settings.end() || it->is_null()) return "not reported";
  if (it->is_boolean()) return it->get<bool>() ? "yes" : "no";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

}  // namespace

Json settings_beside(const Json& settings, const Json& facts) {
  if (!settings.is_object() || !facts.is_object()) return settings;
  Json out = Json::object();
  for (const auto& [name, value] : settings.items())
    if (!facts.contains(name)) out[name] = settings_beside(value, facts);
  return out;
}

std::string settings_words(const Json& row) {
  std::string words;
  const Json settings = settings_beside(at(row, "settings"), at(row, "facts"));
  if (!settings.is_object()) return words;
  for (const auto& [name, value] : settings.items()) {
    const auto own = words_of(value, 0);
    if (own.empty()) continue;
    append(words, ", ", value.is_structured() ? spaced(name) + " (" + own + ")" : spaced(name) + " " + own);
  }
  return words;
}

std::vector<std::string> setting_differences(const Json& from, const Json& to) {
  std::vector<std::string> result;
  for (const char* name : {"layout", "precision", "freezing", "threads"}) {
    const auto a = shown_setting(from, name), b = shown_setting(to, name);
    const bool free_layout = std::string_view(name) == "layout" && (a == "any" || b == "any");
    if (a != b && !free_layout) result.push_back(fmt::format("{}: {}, {}", name, a, b));
  }
  return result;
}

}  // namespace strata::report
