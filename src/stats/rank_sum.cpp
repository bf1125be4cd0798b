// SPDX-License-Identifier: Apache-2.0
#include "stats/rank_sum.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace strata::stats {
namespace {

constexpr std::size_t kMostExact = 4000, kMostUpper = 100;  // pairs; values above, which the work grows with

// The chance of each number of pairs, of m values and n. The largest of all is one of the m in m of m + n cases, and is
// then above all n others (Mann and Whitney's recurrence).
std::vector<double> chances(std::size_t m, std::size_t n) {
  std::vector<std::vector<double>> by_upper(m + 1, std::vector<double>(m * n + 1, 0.0));
  for (auto& chance : by_upper) chance[0] = 1;  // of no others
  for (std::size_t others = 1; others <= n; ++others)
    for (std::size_t i = 1; i <= m; ++i) {
      const double of_upper = static_cast<double>(i) / static_cast<double>(i + others);
      for (std::size_t u = 0; u <= m * n; ++u)
        by_upper[i][u] = (u >= others ? of_upper * by_upper[i - 1][u - others] : 0.0) + (1 - of_upper) * by_upper[i][u];
    }
  return by_upper[m];
}

}  // namespace

double rank_sum_chance(std::span<const double> upper, std::span<const double> lower) {
  if (upper.empty() || lower.empty()) return 1;
  std::size_t above = 0;
  for (const double value : upper)
    above += static_cast<std::size_t>(std::ranges::count_if(lower, [&](double other) { return value > other; }));
  const auto m = upper.size(), n = lower.size();
  if (m * n <= kMostExact && m <= kMostUpper) {
    const auto chance = chances(m, n);
    return std::accumulate(chance.begin() + static_cast<std::ptrdiff_t>(above), chance.end(), 0.0);
  }
  const auto x = static_cast<double>(m), y = static_cast<double>(n);
  const double sd = std::sqrt(x * y * (x + y + 1) / 12);
  return 0.5 * std::erfc((static_cast<double>(above) - x * y / 2 - 0.5) / sd / std::numbers::sqrt2);
}

}  // namespace strata::stats
