// SPDX-License-Identifier: Apache-2.0
// Estimates as the result object has them (docs/results_schema.md); what is not finite is null.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

#include "stats/compare.hpp"

namespace strata::analysis {

inline nlohmann::json finite(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

inline nlohmann::json interval(const stats::Interval& i, double scale = 1) {
  return {{"value", finite(i.value * scale)}, {"low", finite(i.low * scale)}, {"high", finite(i.high * scale)}};
}

// The ratio of each restart that had undisturbed rounds.
inline nlohmann::json by_restart(const stats::Comparison& comparison) {
  auto out = nlohmann::json::array();
  for (const double log_ratio : comparison.per_restart) out.push_back(std::exp(log_ratio));
  return out;
}

// What an interval owes to earlier runs; null: nothing.
inline nlohmann::json learned_from_runs(const stats::Comparison& comparison) {
  if (comparison.half_width.basis != stats::Basis::learned) return {};
  return {{"process_effect_percent", stats::learned_process_effect(comparison) * 100},
          {"restarts", comparison.learned.restarts},
          {"runs", comparison.learned.runs}};
}

}  // namespace strata::analysis
