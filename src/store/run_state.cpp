// SPDX-License-Identifier: Apache-2.0
#include "store/run_state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/process_begin.hpp"

namespace strata::store {
namespace fs = std::filesystem;
namespace {

// The boot and the container that process ids belong to; empty: not known.
std::string system_now() {
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, boot);
  std::error_code ec;
  const auto ids = fs::read_symlink("/proc/self/ns/pid", ec);
  return boot.empty() || ec ? std::string() : boot + " " + ids.string();
}

}  // namespace

std::string this_process() {
  const auto pid = std::to_string(::getpid());
  const auto system = system_now(), begin = process_begin(pid);
  return system.empty() || begin.empty() ? std::string() : fmt::format("{} {} {}", system, pid, begin);
}

RunState state_of(const Run& run) {
  if (!run.finished.empty()) return run.interrupted ? RunState::interrupted : RunState::finished;
  const auto end = run.process.rfind(' ');
  const auto middle = end == std::string::npos || end == 0 ? end : run.process.rfind(' ', end - 1);
  if (middle == std::string::npos || middle == 0) return RunState::unknown;
  if (run.process.substr(0, middle) != system_now()) return RunState::unknown;
  const auto pid = run.process.substr(middle + 1, end - middle - 1);
  const bool number = !pid.empty() && pid.size() < 12 && pid.find_first_not_of("0123456789") == std::string::npos;
  if (!number || process_begin(pid) != run.process.substr(end + 1)) return RunState::interrupted;
  // Else this process asks for its own run only when it could not write the end of it.
  return run.process == this_process() && !run.goes_on ? RunState::interrupted : RunState::running;
}

const char* to_string(RunState state) {
  switch (state) {
    case RunState::finished:
      return "finished";
    case RunState::interrupted:
      return "interrupted";
    case RunState::running:
      return "running";
    default:
      return "unfinished";
  }
}

}  // namespace strata::store
