// SPDX-License-Identifier: Apache-2.0
// A decoded photograph: rows of red, green and blue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::data {

struct Image {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3]
};

constexpr std::size_t most_pixels = 100'000'000;  // of a photograph; beyond it is an attack or a mistake

}  // namespace strata::data
