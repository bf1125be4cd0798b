// SPDX-License-Identifier: Apache-2.0
// The metrics: named numbers of a participant, each with its pass, unit and meaning. Declared in metric.def, a line
// each, and nowhere else.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace strata::core {

enum class Metric {
#define METRIC(name, pass, unit, place, meaning) name,
#include "core/metric.def"
#undef METRIC
};

struct MetricAbout {
  std::string_view name, pass, unit, place, meaning;

  // Of the number and, where it has them, the ends of its interval: "ratio.value", "ratio.low", "ratio.high".
  std::vector<std::string> paths() const;
  // Whether a row has it once, so that it is a column.
  bool is_column() const { return !place.empty() && place.find_first_of("[<") == std::string_view::npos; }
};

inline constexpr std::array kMetrics{
#define METRIC(name, pass, unit, place, meaning) MetricAbout{#name, pass, unit, place, meaning},
#include "core/metric.def"
#undef METRIC
};

inline std::vector<std::string> MetricAbout::paths() const {
  const auto open = place.find('{');
  if (open == std::string_view::npos) return {std::string(place)};
  std::vector<std::string> all;
  for (auto rest = place.substr(open + 1, place.size() - open - 2); !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    all.push_back(std::string(place.substr(0, open)) + std::string(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return all;
}

constexpr const MetricAbout& about(Metric metric) {
  return kMetrics[static_cast<std::size_t>(metric)];
}

// Grows when the meaning of a stored metric changes: those of older runs are then computed anew.
inline constexpr int kMetricsVersion = 1;

}  // namespace strata::core
