// SPDX-License-Identifier: Apache-2.0
// Shapes as people read them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

// "64x3x3"; "scalar" of none.
inline std::string extents(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace strata
