// SPDX-License-Identifier: Apache-2.0
// Which blocks something else than the level disturbed: others on the cores that its threads need, a wait for a core,
// or a time far above that of its undisturbed blocks. Pure functions; why these rules is in docs/measuring.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stats/compare.hpp"

namespace strata::stats {

// What the threads of a case have to run on. `cores` 0: unknown, or the work is not on processors; then nothing is
// crowded.
struct CoreBudget {
  int threads = 1;     // of every level
  int cores = 0;       // that the run may use
  int processors = 0;  // logical ones on them
};

// The share of a machine that others always use a little of: below it nobody is crowded (W002 begins here).
inline constexpr double tolerated_load = 0.1;

// Whether the threads need cores that others took: threads and others together need over a tenth more cores than there
// are. `taken`: the share of all processors' time that others had. Each busy processor of others counts as a core.
bool crowded(const CoreBudget& room, double taken);

// What the driver knows of a block when it decides whether something disturbed it.
struct BlockTiming {
  double median_ns;    // of its iterations
  double wall_ns;      // all recorded iterations together
  double runq_ns;      // run-queue wait during them; NaN: unknown
  double taken = nan;  // share of all processors' time that others had around it; NaN: unknown
  int restart = 0;
};

// Blocks of one level -> why each is disturbed, empty if not. One thread whose wait is known: run-queue wait over 1% of
// wall. Otherwise (more threads cause waits themselves): others crowded it, or its median is over 10% and over 5 robust
// SDs above that of the level's undisturbed blocks: those of its restart if there are eight, else of all restarts.
std::vector<std::string> disturbed(std::span<const BlockTiming> blocks, const CoreBudget& room);

}  // namespace strata::stats
