// SPDX-License-Identifier: Apache-2.0
#include "stats/convergence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/sample.hpp"

namespace strata::stats {
namespace {

constexpr double kRcpAlpha = 0.05;

double mean_of(std::vector<double>::const_iterator begin, std::vector<double>::const_iterator end) {
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace

Convergence convergence(std::vector<double> epochs) {
  std::sort(epochs.begin(), epochs.end());
  Convergence out{.runs = static_cast<int>(epochs.size())};
  out.never =
      static_cast<int>(std::count_if(epochs.begin(), epochs.end(), [](double reached) { return std::isinf(reached); }));
  if (out.runs < 3) return out;
  out.mean = mean_of(epochs.begin() + 1, epochs.end() - 1);
  if (out.never > 0) {
    out.deviation = std::numeric_limits<double>::infinity();
    return out;
  }
  const double centre = mean_of(epochs.begin(), epochs.end());
  double squares = 0;
  for (const double epoch : epochs) squares += (epoch - centre) * (epoch - centre);
  out.deviation = std::sqrt(squares / static_cast<double>(out.runs));
  return out;
}

double fewest_epochs(const Convergence& reference, int runs_used) {
  const int freedom = reference.runs_used() + runs_used - 2;
  if (reference.never > 0 || runs_used < 1 || reference.runs_used() < 1 || freedom < 1)
    return std::numeric_limits<double>::quiet_NaN();
  const double t = student_t_quantile(1 - kRcpAlpha, freedom);
  return std::max(0.0,
                  reference.mean - t * reference.deviation * std::sqrt(1.0 / reference.runs_used() + 1.0 / runs_used));
}

}  // namespace strata::stats
