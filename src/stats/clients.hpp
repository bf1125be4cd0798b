// SPDX-License-Identifier: Apache-2.0
// Statistics of several clients at once: rates over the time that all have in common, quantiles with intervals. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stats/compare.hpp"

namespace strata::stats {

// What one client did in one repetition: its clock at the start and until its last request ended, all requests, and a
// sample of them.
struct ClientTimes {
  std::int64_t start_ns = 0, wall_ns = 0, requests = 0;
  std::vector<std::int64_t> latency_ns, done_ns;  // one entry a sampled request; `done_ns` counts from start_ns
};

struct CommonLoad {
  double requests_per_s = 0;             // of all clients
  std::vector<std::int64_t> latency_ns;  // of the sampled requests that lie wholly in the common time
};

// A client's rate is over its own requests, since one that is cut at an edge would count wrongly. nullopt: less than
// 90% of some client's time is common to all (a process came late), or there is no client.
std::optional<CommonLoad> in_common(std::span<const ClientTimes> clients);

// Mean of the logs over repetitions, each with fresh processes, with the 99% half width of half_width.hpp. Fewer than
// three repetitions: infinite ends, since nothing bounds what varies within one.
Interval over_repetitions(std::span<const double> rates, double process_sigma);

// Quantile q of independent values with a 99% interval from order statistics. Infinite ends: too few values for that
// end.
Interval quantile_interval(std::span<const double> sample, double q);

// The same of all values together, no narrower than the scatter of the repetitions' own quantiles and the process
// effect make it (half_width.hpp): values of one process share its effect.
Interval quantile_over_repetitions(std::span<const std::vector<double>> repetitions, double q, double process_sigma);

// Fewest values whose largest is above quantile q with 99.5% probability, so that the interval has an upper end.
int needed_for_quantile(double q);

// A way to run a level, and what it gives: inputs a second, and a quantile of the time of one request.
struct LoadPoint {
  double inputs_per_s = 0;
  Interval ms;
};
enum class MeetsLimit { yes, maybe, no };
struct ChosenPoint {
  std::size_t index = 0;
  MeetsLimit meets = MeetsLimit::no;
};
// The point with the most inputs a second whose interval lies below the limit; else of those whose interval holds it;
// else the one that is nearest.
std::optional<ChosenPoint> choose_point(std::span<const LoadPoint> points, double limit_ms);

}  // namespace strata::stats
