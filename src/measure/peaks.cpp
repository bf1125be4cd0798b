// SPDX-License-Identifier: Apache-2.0
#include "measure/peaks.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/blocks.hpp"
#include "measure/calibrate.hpp"
#include "probe/limits.hpp"
#include "probe/load.hpp"

namespace strata::measure {
namespace {

// Trials last 5 ms; the least is what the kernel's ticks need to tell whether others were busy.
std::chrono::milliseconds time_for(double budget_s) {
  return std::chrono::milliseconds(std::lround(std::clamp(100 * budget_s, 200.0, 1000.0)));
}

}  // namespace

Result<store::Limits> limits_of(const core::Case& question, const Json& machine, double budget_s, store::Store& store) {
  if (question.device != core::Device::cpu || question.precision != core::Precision::fp32) return store::Limits{};
  const auto room = analysis::core_budget_of(question, machine);
  probe::LoadMeter meter;
  const auto seen = probe::measure_limits(room.threads, time_for(budget_s));
  const auto load = meter.lap();
  const bool quiet = load && !stats::crowded(room, load->taken());
  const auto best = STRATA_TRY(store.save_peak({.machine = machine_key(machine),
                                                .instruction_set = seen.instruction_set,
                                                .threads = seen.threads,
                                                .gflops = seen.gflops,
                                                .gbytes_per_s = seen.gbytes_per_s,
                                                .quiet = quiet}));
  return store::Limits{.gflops = best.gflops,
                       .gbytes_per_s = best.gbytes_per_s,
                       .instruction_set = best.instruction_set,
                       .quiet = best.quiet,
                       .seen_gflops = seen.gflops,
                       .seen_gbytes_per_s = seen.gbytes_per_s};
}

}  // namespace strata::measure
