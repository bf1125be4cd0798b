// SPDX-License-Identifier: Apache-2.0
#include "report/settings.hpp"

#include <fmt/format.h>

#include "analysis/row_result.hpp"
#include "report/format.hpp"

namespace strata::report {
namespace {

void append(std::string& words, const char* between, const std::string& more) {
  if (!more.empty()) words += (words.empty() ? "" : between) + more;
}

// A value's own words; what is empty has none.
std::string words_of(const nlohmann::json& value, int depth) {
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

}  // namespace

std::string settings_words(const analysis::RowResult& row) {
  std::string words;
  const auto settings = analysis::settings_beside(row.settings, row.facts);  // also of a result that others wrote
  if (!settings.is_object()) return words;
  for (const auto& [name, value] : settings.items()) {
    const auto own = words_of(value, 0);
    if (own.empty()) continue;
    append(words, ", ", value.is_structured() ? spaced(name) + " (" + own + ")" : spaced(name) + " " + own);
  }
  return words;
}

}  // namespace strata::report
