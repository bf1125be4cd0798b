// SPDX-License-Identifier: Apache-2.0
// Whether a process is there, and whether it is still the same one: numbers of processes are used again.
#pragma once

#include <sstream>
#include <string>

namespace strata {

// What /proc/PID/stat says of a process ("self" or digits) from its state on, the third field: the name before it may
// hold anything. Nothing can be read where there is no such process.
std::istringstream stat_fields(const std::string& pid);

// When the process began, in the kernel's ticks since boot; empty: there is none of this number ("self" or digits), or
// it has ended and nobody has waited for it.
std::string process_begin(const std::string& pid);

inline bool is_running(int pid) {
  return !process_begin(std::to_string(pid)).empty();
}

}  // namespace strata
