// SPDX-License-Identifier: Apache-2.0
// The machine's measured limits for a number of threads: peak float32 FLOP/s of dependent-free FMAs, and memory
// bandwidth. Both are the best of many short trials, since a limit is what the machine can do, not what it does on
// average.
#pragma once

#include <chrono>
#include <string>

namespace strata::probe {

struct Limits {
  double gflops = 0;            // 10^9 float32 operations a second, an FMA counts as two
  double gbytes_per_s = 0;      // 10^9 bytes a second, the best of triad (STREAM's count) and of reading alone
  int threads = 0;              // pinned, one a core as far as there are cores
  std::string instruction_set;  // "avx512f", "avx2", "sse2", "generic"
};

// Runs about `budget` (half for each figure; at least one trial of each). threads < 1 counts as 1.
Limits measure_limits(int threads, std::chrono::milliseconds budget);

}  // namespace strata::probe
