// SPDX-License-Identifier: Apache-2.0
// A decoded photograph: rows of red, green and blue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace strata::data {

struct Image {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3]
};

constexpr std::size_t most_pixels = 100'000'000;  // of a photograph; beyond it is an attack or a mistake

// Held while an image of so many pixels is decoded: of large ones, which take up to 6 bytes a pixel, one at a time,
// however many threads decode.
inline std::unique_lock<std::mutex> one_large_image(std::size_t pixels) {
  constexpr std::size_t large = 16'000'000;
  static std::mutex alone;
  return pixels > large ? std::unique_lock(alone) : std::unique_lock<std::mutex>();
}

}  // namespace strata::data
