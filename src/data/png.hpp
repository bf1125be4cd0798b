// SPDX-License-Identifier: Apache-2.0
// PNG files, by libpng.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/result.hpp"
#include "data/image.hpp"

namespace strata::data {

bool is_png(std::span<const std::uint8_t> bytes);
// Any PNG as 8-bit RGB; what is transparent lies on black. `where` names it in errors.
Result<Image> decode_png(std::span<const std::uint8_t> bytes, const std::string& where);
// One channel (grey) or three, interleaved, 8 bits each; the bytes of a PNG file.
std::string encode_png(std::span<const std::uint8_t> pixels, std::uint32_t width, std::uint32_t height, int channels);

}  // namespace strata::data
