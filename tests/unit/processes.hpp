// SPDX-License-Identifier: Apache-2.0
// Whether processes that tests started are still there.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace strata {

inline bool process_lives(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const auto bracket = text.rfind(')');
  return bracket != std::string::npos && text[bracket + 2] != 'Z' && text[bracket + 2] != 'X';
}

inline bool gone_within(pid_t pid, std::chrono::milliseconds limit) {
  for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
    if (!process_lives(pid)) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace strata
