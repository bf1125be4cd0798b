// SPDX-License-Identifier: Apache-2.0
// What a level's turns of an epoch took beside time: processor time, waiting for a processor, faults, energy, memory.
// Read before and after each turn, never while a step is timed.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "probe/usage.hpp"

namespace strata::training {

class TurnMeter {
 public:
  // Looks at `pid` and what it started. Where the machine shows no energy, that is left out of the values.
  explicit TurnMeter(pid_t pid);

  void begin();
  void end();
  // The sums since the last call, as series of an epoch (docs/store.md): cpu_seconds, cpu_utilisation (of `threads`
  // processors), run_queue_wait_seconds, major_faults, minor_faults, switched_out, energy_joules, peak_resident_bytes.
  // Begins the next epoch. What the kernel does not show is no entry.
  void take(std::map<std::string, double>& values, int threads);

 private:
  pid_t pid_;
  std::optional<probe::EnergyMeter> energy_;
  std::optional<probe::Usage> before_;
  std::chrono::steady_clock::time_point began_;
  probe::Usage used_;
  double wall_s_ = 0, joules_ = 0;
  bool known_ = true;  // every turn of this epoch could be read
};

}  // namespace strata::training
