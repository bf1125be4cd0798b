// SPDX-License-Identifier: Apache-2.0
#include "stats/clients.hpp"

#include <algorithm>
#include <cmath>

namespace strata::stats {
namespace {

constexpr double kCommon = 0.9;  // least share of each client's time that all must have in common
constexpr double kTail = 0.005;  // of the binomial distribution beyond each end of a 99% interval

// P(X <= k) for each k of a binomial distribution; what is 12 standard deviations away is taken for 0.
std::vector<double> binomial_cumulative(std::size_t n, double p) {
  std::vector<double> cumulative(n + 1);
  const double trials = static_cast<double>(n);
  const double reach = 12 * std::sqrt(trials * p * (1 - p)) + 12;
  double sum = 0;
  for (std::size_t k = 0; k <= n; ++k) {
    const double hits = static_cast<double>(k);
    if (std::abs(hits - trials * p) < reach)
      sum += std::exp(std::lgamma(trials + 1) - std::lgamma(hits + 1) - std::lgamma(trials - hits + 1) +
                      hits * std::log(p) + (trials - hits) * std::log1p(-p));
    cumulative[k] = sum;
  }
  return cumulative;
}

}  // namespace

std::optional<Together> in_common(std::span<const ClientTimes> clients) {
  if (clients.empty()) return std::nullopt;
  std::int64_t begin = clients.front().start_ns, end = begin + clients.front().wall_ns;
  for (const auto& one : clients) {
    begin = std::max(begin, one.start_ns);
    end = std::min(end, one.start_ns + one.wall_ns);
  }
  Together together;
  for (const auto& one : clients) {
    // A last request that outlasts the others' belongs to the closed loop; only what is more than that is a client that
    // came late or stayed behind.
    const auto longest = one.latency_ns.empty() ? 0 : *std::max_element(one.latency_ns.begin(), one.latency_ns.end());
    if (one.wall_ns <= 0 || static_cast<double>(end - begin + longest) < kCommon * static_cast<double>(one.wall_ns))
      return std::nullopt;
    together.requests_per_s += static_cast<double>(one.requests) / static_cast<double>(one.wall_ns) * 1e9;
    for (std::size_t i = 0; i < one.latency_ns.size(); ++i) {
      const std::int64_t done = one.start_ns + one.done_ns[i];
      if (done - one.latency_ns[i] >= begin && done <= end) together.latency_ns.push_back(one.latency_ns[i]);
    }
  }
  return together;
}

Interval over_repetitions(std::span<const double> rates) {
  if (rates.empty()) return {};
  const double count = static_cast<double>(rates.size());
  double mean = 0, squares = 0;
  for (const double rate : rates) mean += std::log(rate) / count;
  if (rates.size() == 1) return {rates.front(), 0, std::numeric_limits<double>::infinity()};
  for (const double rate : rates) squares += (std::log(rate) - mean) * (std::log(rate) - mean);
  const double half = student_t_quantile(0.995, count - 1) * std::sqrt(squares / (count - 1) / count);
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

Interval quantile_interval(std::span<const double> sample, double q) {
  if (sample.empty()) return {};
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  const auto cumulative = binomial_cumulative(sorted.size(), q);
  Interval out{quantile(sorted, q), -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  // The k-th smallest lies above the quantile only if fewer than k values lie below it, X of them: P(X <= k - 1).
  for (std::size_t k = sorted.size(); k >= 1 && cumulative[k - 1] >= 1 - kTail; --k) out.high = sorted[k - 1];
  for (std::size_t k = 1; k <= sorted.size() && cumulative[k - 1] <= kTail; ++k) out.low = sorted[k - 1];
  return out;
}

std::optional<Chosen> choose_point(std::span<const LoadPoint> points, double limit_ms) {
  std::optional<Chosen> best;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& point = points[i];
    const auto meets = point.ms.high <= limit_ms ? Meets::yes : point.ms.low > limit_ms ? Meets::no : Meets::maybe;
    const bool better =
        !best || meets < best->meets ||
        (meets == best->meets && (meets == Meets::no ? point.ms.value < points[best->index].ms.value
                                                     : point.inputs_per_s > points[best->index].inputs_per_s));
    if (better) best = Chosen{i, meets};
  }
  return best;
}

int needed_for_quantile(double q) {
  return static_cast<int>(std::ceil(std::log(kTail) / std::log(q)));
}

}  // namespace strata::stats
