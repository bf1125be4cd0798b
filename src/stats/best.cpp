// SPDX-License-Identifier: Apache-2.0
#include "stats/best.hpp"

#include <algorithm>
#include <cmath>

#include "stats/sample.hpp"

namespace strata::stats {
namespace {

constexpr double kTail = 0.005;        // of the 99% interval that compare() makes, at each end
constexpr double kAlpha = 0.01;        // of all comparisons with one level together
constexpr double kAsNormal = 1000000;  // degrees of freedom

// Whether `level` is faster than `reference`, beyond what such a comparison allows.
bool is_faster(const Comparison& comparison, std::size_t others, double minimum_effect) {
  const double width = half_width_at(comparison, kAlpha / static_cast<double>(std::max<std::size_t>(1, others)));
  return std::isfinite(width) && comparison.log_ratio.value > std::max(width, std::log1p(minimum_effect));
}

}  // namespace

double half_width_at(const Comparison& comparison, double tail) {
  if (tail >= kTail) return comparison.half_width.width;
  const bool by_restarts = comparison.half_width.basis == Basis::restarts;
  const double df = by_restarts ? std::max(1, comparison.restarts() - 1) : kAsNormal;
  return comparison.half_width.width * student_t_quantile(1 - tail, df) / student_t_quantile(1 - kTail, df);
}

BestSet not_excluded_as_best(std::size_t count, const CompareTwo& compare, double minimum_effect) {
  BestSet best;
  std::vector<std::vector<Comparison>> pairs(count, std::vector<Comparison>(count));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j)
      if (i != j) pairs[i][j] = compare(i, j);
  for (std::size_t i = 0; i < count; ++i) {
    bool excluded = false;
    for (std::size_t j = 0; j < count && !excluded; ++j)
      excluded = i != j && is_faster(pairs[i][j], count - 1, minimum_effect);
    if (!excluded) best.members.push_back(i);
  }
  if (best.members.size() == 1) return best;
  double widest = 0;
  for (const auto i : best.members)
    for (const auto j : best.members) {
      if (i == j) continue;
      const auto& interval = pairs[i][j].log_ratio;
      const double end = std::max(std::abs(interval.low), std::abs(interval.high));
      widest = std::isnan(end) ? std::numeric_limits<double>::infinity() : std::max(widest, end);
    }
  if (!best.members.empty()) best.tie_within = std::expm1(widest);
  return best;
}

}  // namespace strata::stats
