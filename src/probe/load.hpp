// SPDX-License-Identifier: Apache-2.0
// How busy others keep the processors that this process may use: other programs, and the host of a virtual machine.
// From the kernel's counters, which have ticks of 10 ms: windows under about 200 ms say little.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace strata::probe {

// Shares, 0 to 1, of the time of all processors that this process may use.
struct Load {
  double others = 0;   // programs other than this process and its descendants
  double steal = 0;    // the host, which ran other machines meanwhile
  double seconds = 0;  // that were watched

  double taken() const { return others + steal; }
};

// Watches from its construction on; `lap` ends a window and begins the next.
class LoadMeter {
 public:
  LoadMeter();
  double seconds() const;     // since the window began
  std::optional<Load> lap();  // nullopt: the kernel does not show its counters

 private:
  struct Reading {
    double idle = 0, steal = 0, own = 0;  // in ticks; idle and steal of the processors that may be used
    int processors = 0;
    std::chrono::steady_clock::time_point at;
  };
  std::optional<Reading> read() const;

  std::vector<int> processors_;
  std::optional<Reading> begin_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace strata::probe
