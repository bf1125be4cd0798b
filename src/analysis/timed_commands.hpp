// SPDX-License-Identifier: Apache-2.0
// Programs that ran side by side, in turns, and what their times say. No network is in it, and nothing is proven.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result.hpp"
#include "common/state.hpp"
#include "stats/compare.hpp"

namespace strata::analysis {

struct TimedCommand {
  std::string name;
  State state = State::measured;
  std::string reason;                // why it has no number
  std::vector<double> wall_ns;       // of each run; of a server an iteration's, by block
  std::vector<double> processor_ns;  // of each run, with the processes that it waited for; of servers: none
  std::uint64_t peak_bytes = 0;      // resident at most, of the program itself; 0: not known
};

struct TimedCommands {
  std::vector<TimedCommand> commands;
  // [restart][round][command], ns; NaN: none. A command's run is a restart of one round: each is a process of its own.
  stats::Blocks blocks;
  std::optional<double> others;   // the share of the processors that other programs and the host had meanwhile
  int cores = 0, processors = 0;  // that they may use; 0: not known
  std::string cpu, began_at;      // the processor's model, the time as 2026-11-21T06:15:00Z; empty: not known
};

// False: others took cores that the busiest of the commands needs, so that no verdict is given. A server is taken to
// need one.
bool is_reliable(const TimedCommands& timed);

// The speedup of a command over the first; `inconclusive` where others used the machine. nullopt: one has no number.
std::optional<JudgedRatio> speedup_of(const TimedCommands& timed, std::size_t command);

}  // namespace strata::analysis
