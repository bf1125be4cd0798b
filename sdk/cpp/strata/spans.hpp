// SPDX-License-Identifier: Apache-2.0
// When operations began and ended.
#pragma once

#include <time.h>

#include <cstdint>
#include <vector>

namespace strata {

// In nanoseconds of the monotonic clock.
struct Span {
  std::int64_t begin_ns = 0, end_ns = 0;
};
using Spans = std::vector<Span>;

inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace strata
