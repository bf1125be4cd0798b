// SPDX-License-Identifier: Apache-2.0
// Photographs: decoded, rows of red, green and blue; JPEG files by libjpeg-turbo, PNG files by libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"

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

// JPEG, with its most exact inverse transform and smooth chroma: what Pillow decodes.
bool is_jpeg(std::span<const std::uint8_t> bytes);

// As RGB. `scaled_to` > 0: decoded at the smallest of 1/8, 1/4, 1/2 and 1 of its size whose sides are both at least
// four fifths of that (other pixels than decoding all of it and shrinking, for a part of the time). Errors: cut,
// damaged, CMYK, too large.
Result<Image> decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& where, std::size_t scaled_to);

bool is_png(std::span<const std::uint8_t> bytes);
// Any PNG as 8-bit RGB; what is transparent lies on black. `where` names it in errors.
Result<Image> decode_png(std::span<const std::uint8_t> bytes, const std::string& where);
// One channel (grey) or three, interleaved, 8 bits each; the bytes of a PNG file.
std::string encode_png(std::span<const std::uint8_t> pixels, std::uint32_t width, std::uint32_t height, int channels);

}  // namespace strata::data
