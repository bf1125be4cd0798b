// SPDX-License-Identifier: Apache-2.0
// The metrics: named numbers of a participant, each with its pass, unit and meaning. Declared in metric.def, a line
// each, and nowhere else.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace strata::core {

enum class Metric {
#define METRIC(name, pass, unit, meaning) name,
#include "core/metric.def"
#undef METRIC
};

struct MetricAbout {
  std::string_view name, pass, unit, meaning;
};

inline constexpr std::array kMetrics{
#define METRIC(name, pass, unit, meaning) MetricAbout{#name, pass, unit, meaning},
#include "core/metric.def"
#undef METRIC
};

constexpr const MetricAbout& about(Metric metric) {
  return kMetrics[static_cast<std::size_t>(metric)];
}

// Grows when the meaning of a stored metric changes: those of older runs are then computed anew.
inline constexpr int kMetricsVersion = 1;

}  // namespace strata::core
