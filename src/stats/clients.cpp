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

std::optional<CommonLoad> in_common(std::span<const ClientTimes> clients) {
  if (clients.empty()) return std::nullopt;
  std::int64_t begin = clients.front().start_ns, end = begin + clients.front().wall_ns;
  for (const auto& client : clients) {
    begin = std::max(begin, client.start_ns);
    end = std::min(end, client.start_ns + client.wall_ns);
  }
  CommonLoad together;
  for (const auto& client : clients) {
    // A last request that outlasts the others' belongs to the closed loop; only what is more than that is a client that
    // came late or stayed behind.
    const auto longest =
        client.latency_ns.empty() ? 0 : *std::max_element(client.latency_ns.begin(), client.latency_ns.end());
    if (client.wall_ns <= 0 ||
        static_cast<double>(end - begin + longest) < kCommon * static_cast<double>(client.wall_ns))
      return std::nullopt;
    together.requests_per_s += static_cast<double>(client.requests) / static_cast<double>(client.wall_ns) * 1e9;
    for (std::size_t i = 0; i < client.latency_ns.size(); ++i) {
      const std::int64_t done = client.start_ns + client.done_ns[i];
      if (done - client.latency_ns[i] >= begin && done <= end) together.latency_ns.push_back(client.latency_ns[i]);
    }
  }
  return together;
}

namespace {

// Of the mean of these logarithms, one a repetition.
double half_width_of(std::span<const double> logs, double process_sigma, double within) {
  const double count = static_cast<double>(logs.size());
  double mean = 0, squares = 0;
  for (const double log : logs) mean += log / count;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  return half_width({.restarts = static_cast<int>(logs.size()),
                     .processes = 1 / count,
                     .process_sigma = process_sigma,
                     .within = within,
                     .seen = logs.size() > 1 ? squares / (count - 1) / count : nan})
      .width;
}

}  // namespace

Interval over_repetitions(std::span<const double> rates, double process_sigma) {
  if (rates.empty()) return {};
  std::vector<double> logs;
  double mean = 0;
  for (const double rate : rates) logs.push_back(std::log(rate));
  for (const double log : logs) mean += log / static_cast<double>(logs.size());
  const double half = half_width_of(logs, process_sigma, nan);
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

Interval quantile_over_repetitions(std::span<const std::vector<double>> repetitions, double q, double process_sigma) {
  std::vector<double> all, logs;
  for (const auto& sample : repetitions) {
    if (sample.empty()) continue;
    all.insert(all.end(), sample.begin(), sample.end());
    logs.push_back(std::log(quantile(sample, q)));
  }
  auto out = quantile_interval(all, q);
  if (logs.empty()) return out;
  // What varies within a repetition is in the order statistics, so that only processes are left to be judged here.
  const double half = half_width_of(logs, process_sigma, 0);
  out.low = std::min(out.low, out.value * std::exp(-half));
  out.high = std::max(out.high, out.value * std::exp(half));
  return out;
}

std::optional<ChosenPoint> choose_point(std::span<const LoadPoint> points, double limit_ms) {
  std::optional<ChosenPoint> best;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& point = points[i];
    const auto meets = point.ms.high <= limit_ms ? MeetsLimit::yes
                       : point.ms.low > limit_ms ? MeetsLimit::no
                                                 : MeetsLimit::maybe;
    const bool better =
        !best || meets < best->meets ||
        (meets == best->meets && (meets == MeetsLimit::no ? point.ms.value < points[best->index].ms.value
                                                          : point.inputs_per_s > points[best->index].inputs_per_s));
    if (better) best = ChosenPoint{i, meets};
  }
  return best;
}

int needed_for_quantile(double q) {
  return static_cast<int>(std::ceil(std::log(kTail) / std::log(q)));
}

}  // namespace strata::stats
