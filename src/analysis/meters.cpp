// SPDX-License-Identifier: Apache-2.0
#include "analysis/meters.hpp"

#include <algorithm>
#include <numeric>

namespace strata::analysis {
namespace {

using core::Metric;

constexpr const char* kNoLook = "no whole restart has a look at the level's process";

// The sum of a field over iterations, of the restarts that have it.
Meter mean_of(const store::Row& row, std::optional<double> store::MeterSums::*field, double factor) {
  double sum = 0, iterations = 0;
  for (const auto& restart : row.info.meters) {
    const auto& value = restart.*field;
    if (!value || restart.iterations <= 0) continue;
    sum += *value;
    iterations += static_cast<double>(restart.iterations);
  }
  if (iterations <= 0) return {std::nullopt, kNoLook};
  return {factor * sum / iterations, ""};
}

}  // namespace

std::optional<double> cpu_utilisation(const store::Row& row, int threads) {
  double cpu = 0, wall_with_cpu = 0;
  for (const auto& block : row.blocks) {
    if (!block.cpu_ns) continue;
    cpu += static_cast<double>(*block.cpu_ns);
    wall_with_cpu = std::accumulate(block.wall_ns.begin(), block.wall_ns.end(), wall_with_cpu);
  }
  if (wall_with_cpu <= 0) return std::nullopt;
  return cpu / wall_with_cpu / std::max(1, threads);
}

std::map<Metric, Meter> meters_of(const store::Row& row, int threads) {
  std::map<Metric, Meter> all;
  const auto used = cpu_utilisation(row, threads);
  all[Metric::cpu_utilisation] = {used, used ? "" : "the level does not report its processor time"};
#define METER(member, metric, units) all[Metric::metric] = mean_of(row, &store::MeterSums::member, units);
#include "core/meter.def"
#undef METER
  auto& energy = all[Metric::energy] = mean_of(row, &store::MeterSums::energy, 1);
  for (const auto& restart : row.info.meters)
    if (!energy.value && restart.no_energy) energy.why_not = *restart.no_energy;
  return all;
}

}  // namespace strata::analysis
