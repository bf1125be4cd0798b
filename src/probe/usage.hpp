// SPDX-License-Identifier: Apache-2.0
// What a process and its descendants have used of the processors by now, and what a machine has used of energy. Two
// readings, one before and one after, tell what lay between.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "common/result.hpp"

namespace strata::probe {

// Summed over the tree. Threads that ended, and children that ended and were waited for, count in the processor's time,
// and not in the rest.
struct Usage {
  double cpu_s = 0;  // of all threads; one that spins while it waits uses it too
#define METER(member, metric, units) double member = 0;
#include "core/meter.def"
#undef METER

  Usage& operator+=(const Usage& other);
};
Usage operator-(const Usage& later, const Usage& earlier);

// Of `pid` and all its living descendants. nullopt: no such process, or not ours to read.
std::optional<Usage> process_usage(pid_t pid);

// Whether all processors of this machine together can have worked for `cpu_s` in `elapsed_s`. Where they cannot, a
// clock was set or faked, which is no process's doing.
bool can_have_worked(double cpu_s, double elapsed_s);

// Energy of the processors' packages as the kernel's powercap counts it (Intel and AMD, RAPL); counters that wrap are
// unwrapped, if no two readings are more than one wrap apart (minutes).
class EnergyMeter {
 public:
  // `zones`: /sys/class/powercap, or a folder like it in a test. Error: why there is none, in words.
  static Result<EnergyMeter> open(const std::filesystem::path& zones = "/sys/class/powercap");

  // Joules since the last lap, or since it was opened; nullopt: a counter can no longer be read.
  std::optional<double> lap();

 private:
  struct Zone {
    std::filesystem::path counter;
    double range_uj = 0, last_uj = 0;
  };
  std::vector<Zone> packages_;
};

}  // namespace strata::probe
