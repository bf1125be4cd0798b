// SPDX-License-Identifier: Apache-2.0
// What a level's rounds of a restart took beside time. Its process is stopped while others have their turns, so that
// two looks at it, before the first round and after the last, see its own turns and cost none of them anything. Energy
// is that of the whole processor and is read around each turn.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "probe/usage.hpp"
#include "store/row_info.hpp"

namespace strata::measure {

class RestartMeter {
 public:
  // From now on, of `pid` and what it started. `energy`: the meter, or why there is none.
  explicit RestartMeter(pid_t pid, Result<probe::EnergyMeter> energy = probe::EnergyMeter::open());

  void turn_begins();
  // `iterations`: that the turn made, those that are not recorded included.
  void turn_ended(int iterations);

  // What the process used between two looks at it does not count: it was no turn.
  void leave_out(const probe::Usage& from, const probe::Usage& until);

  // Processor time since it was made, and the time of the turns; nullopt: there was no turn, or it cannot be read, or
  // is more than this machine has.
  struct Work {
    double cpu_s = 0, turns_s = 0;
  };
  std::optional<Work> work() const;

  // Over the turns so far; which restart's they are, the caller says. nullopt: there was no turn, or the process cannot
  // be read.
  std::optional<store::MeterSums> sums() const;

 private:
  pid_t pid_;
  std::optional<probe::Usage> before_;
  std::optional<probe::EnergyMeter> energy_;
  std::string no_energy_;
  double joules_ = 0, turns_s_ = 0;
  std::int64_t made_ns_ = 0, turn_began_ns_ = 0;
  std::int64_t iterations_ = 0;
};

}  // namespace strata::measure
