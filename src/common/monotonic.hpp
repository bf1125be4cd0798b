// SPDX-License-Identifier: Apache-2.0
// The driver's own clock, which the SDKs use too: processes of one machine read the same time.
#pragma once

#include <cstdint>
#include <ctime>

namespace strata {

// CLOCK_MONOTONIC in ns.
inline std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace strata
