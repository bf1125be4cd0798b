// SPDX-License-Identifier: Apache-2.0
// What this machine is and how busy it is: cores, caches, instruction sets, memory, limits of its container, load by
// others. Nothing here needs root; what cannot be read is null, empty or 0, never guessed.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace strata::probe {

struct Cpu {
  std::string model;                                        // as the kernel names it
  int logical = 1;                                          // logical processors that this process may use
  int physical = 1;                                         // cores behind them
  int online = 1;                                           // logical processors of the machine
  bool smt = false;                                         // two of our logical processors share a core
  std::vector<int> one_per_core;                            // one logical processor of each core, for pinning
  std::uint64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // of one instance each, as processor 0 sees it
  std::uint64_t last_cache_bytes = 0;  // of the last level, all instances that our processors reach; 0: not shown
  std::vector<std::string> instruction_sets;  // the vector ones that processor and kernel both offer
  std::string governor;                       // empty: not readable (usual in a virtual machine)
  std::string hypervisor;                     // empty: none seen
};

struct Memory {
  std::uint64_t total_bytes = 0, available_bytes = 0, swap_bytes = 0;
};

// Limits that a container puts on this process (cgroup v1 or v2).
struct CgroupLimits {
  std::optional<double> cpus;  // CPU quota in processors
  std::optional<std::uint64_t> memory_bytes;
};

// Processors that this process may use; empty: more than a cpu_set_t holds, and then all count.
std::vector<int> usable_processors();
Cpu cpu();
// Whether the processor multiplies bfloat16 itself; without it libraries widen to float32, or compute so.
bool native_bfloat16(const Cpu& cpu);
Memory memory();
CgroupLimits cgroup_limits();

// The default number of threads: cores that this process may use, at most its CPU quota, at least 1.
int physical_cores();

// Share of the time of the processors that this process may use, 0 to 1, that others than this process and its
// descendants used in the window (load.hpp). Sleeps that long.
double other_load(std::chrono::milliseconds window);

// Flat description for `machine` of docs/results_schema.md: strings, numbers, booleans or null. Takes milliseconds,
// sleeps never.
nlohmann::json machine();

}  // namespace strata::probe
