// SPDX-License-Identifier: Apache-2.0
// What the machine can do at most, measured: multiplications and additions, and reading of memory, on all threads.
#pragma once

namespace bench {

struct Machine {
  double gflops;           // float32, fused multiply-add in registers
  double memory_gbytes_s;  // reading 256 MB once
  double cache_gbytes_s;   // reading 8 MB again and again
};
// The best of several short tries.
Machine measure_machine(int threads);

}  // namespace bench
