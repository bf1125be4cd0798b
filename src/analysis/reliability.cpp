// SPDX-License-Identifier: Apache-2.0
#include "analysis/reliability.hpp"

#include "analysis/blocks.hpp"

namespace strata::analysis {
namespace {

constexpr double kWaitedShare = 0.01;  // as of a block (stats/disturbed.hpp)

}  // namespace

bool is_reliable(const store::Case& run_case, const stats::CoreBudget& room, std::size_t disturbed, std::size_t timed) {
  return !stats::crowded(room, run_case.trust.load.taken()) || 2 * disturbed <= timed;
}

bool is_reliable(const store::Run& run, const store::Case& run_case, const std::vector<const Learning*>& levels) {
  const auto room = core_budget_of(run_case.question, run.machine);
  std::size_t disturbed = 0, timed = 0;
  for (const auto* level : levels)
    for (const int repeat : level->repeats())
      for (const auto& [epoch, seconds] : level->series("step_seconds", repeat)) {
        const auto& waits = level->series("run_queue_wait_seconds", repeat);
        const auto waited = waits.find(epoch);
        ++timed;
        disturbed += room.threads > 1 || waited == waits.end() || waited->second > kWaitedShare * seconds;
      }
  return is_reliable(run_case, room, disturbed, timed);
}

}  // namespace strata::analysis
