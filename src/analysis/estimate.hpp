// SPDX-License-Identifier: Apache-2.0
// Numbers of stats/ as results have them (result.hpp): what is not finite is unknown.
#pragma once

#include <cmath>
#include <vector>

#include "analysis/result.hpp"
#include "stats/compare.hpp"

namespace strata::analysis {

inline OptionalNumber finite(double value) {
  return std::isfinite(value) ? OptionalNumber(value) : std::nullopt;
}

// The ratio of each restart that had undisturbed rounds.
inline std::vector<double> by_restart(const stats::Comparison& comparison) {
  std::vector<double> ratios;
  for (const double log_ratio : comparison.per_restart) ratios.push_back(std::exp(log_ratio));
  return ratios;
}

// What an interval owes to earlier runs.
inline std::optional<LearnedEffect> learned_from_runs(const stats::Comparison& comparison) {
  if (comparison.half_width.basis != stats::Basis::learned) return std::nullopt;
  return LearnedEffect{.process_effect_percent = stats::learned_process_effect(comparison) * 100,
                       .restarts = static_cast<int>(comparison.learned.restarts),
                       .runs = static_cast<int>(comparison.learned.runs)};
}

}  // namespace strata::analysis
