// SPDX-License-Identifier: Apache-2.0
// Times and shares as people write them in options.
#pragma once

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace strata {

// A finite number that is not negative, and what stands behind it; nullopt: none.
inline std::optional<std::pair<double, std::string>> number_and_unit(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || text.starts_with('-')) return std::nullopt;
  return std::pair(value, std::string(end, text.data() + text.size()));
}

// "60s", "2m", "1h" or seconds; nullopt: something else.
inline std::optional<double> seconds_of(const std::string& text) {
  static const std::map<std::string, double> units{{"", 1},   {"ms", 0.001}, {"s", 1},
                                                   {"m", 60}, {"min", 60},   {"h", 3600}};
  const auto quantity = number_and_unit(text);
  if (!quantity || !units.contains(quantity->second)) return std::nullopt;
  return quantity->first * units.at(quantity->second);
}

// "1%" is 0.01, with "%" for `unit`: the number nearest to what is written, which a division would miss at times.
// nullopt: something else.
inline std::optional<double> hundredths_of(const std::string& text, const std::string& unit) {
  const auto quantity = number_and_unit(text);
  if (!quantity || quantity->second != unit) return std::nullopt;
  const auto shifted = text.substr(0, text.size() - unit.size()) + "e-2";
  double value = 0;
  std::from_chars(shifted.data(), shifted.data() + shifted.size(), value);
  return value;
}

// "1%" or 0.01; nullopt: something else.
inline std::optional<double> share_of(const std::string& text) {
  const auto quantity = number_and_unit(text);
  return quantity && quantity->second.empty() ? quantity->first : hundredths_of(text, "%");
}

}  // namespace strata
