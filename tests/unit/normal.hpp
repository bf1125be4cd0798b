// SPDX-License-Identifier: Apache-2.0
// Normal draws by Box and Muller from the project's own generator: the same on every machine.
#pragma once

#include <cmath>
#include <numbers>

#include "stats/schedule.hpp"

namespace strata::stats {

inline double normal(Random& random) {
  const double u = (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace strata::stats
