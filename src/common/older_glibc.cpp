// SPDX-License-Identifier: Apache-2.0
// What a program that is linked on Debian 12 (glibc 2.36) would take from it that 2.34 has not: of the package's
// driver. std::hypot, whose symbol is of 2.35, the sources do without.
#include <sys/random.h>

#include <cstdint>

// For libstdc++'s std::random_device.
extern "C" std::uint32_t arc4random() {
  std::uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
