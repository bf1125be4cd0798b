// SPDX-License-Identifier: Apache-2.0
#include "analysis/timed_commands.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/blocks.hpp"
#include "stats/disturbed.hpp"

namespace strata::analysis {

bool is_reliable(const TimedCommands& timed) {
  double busiest = 1;
  for (const auto& command : timed.commands)
    for (std::size_t run = 0; run < command.processor_ns.size(); ++run)
      busiest = std::max(busiest, command.processor_ns[run] / command.wall_ns[run]);
  const stats::CoreBudget room{static_cast<int>(std::lround(busiest)), timed.cores, timed.processors};
  return !stats::crowded(room, timed.others.value_or(0));
}

std::optional<JudgedRatio> speedup_of(const TimedCommands& timed, std::size_t command) {
  if (timed.commands.front().state != State::measured || timed.commands[command].state != State::measured)
    return std::nullopt;
  JudgedRatio ratio;
  if (command == 0) {
    ratio.value = ratio.low = ratio.high = 1;
    ratio.verdict = RatioVerdict::reference;
    return ratio;
  }
  const auto differences = stats::log_differences(timed.blocks, 0, command);
  const auto comparison = stats::compare(differences, stats::assumed_process_sigma(1));
  static_cast<Estimate&>(ratio) = Estimate(comparison.ratio());
  ratio.verdict =
      is_reliable(timed) ? verdict_of(stats::judge(comparison, kMinimumEffect).direction) : RatioVerdict::inconclusive;
  return ratio;
}

}  // namespace strata::analysis
