// SPDX-License-Identifier: Apache-2.0
// JPEG files, by libjpeg-turbo, with its most exact inverse transform and smooth chroma: what Pillow decodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/result.hpp"
#include "data/image.hpp"

namespace strata::data {

bool is_jpeg(std::span<const std::uint8_t> bytes);

// As RGB. `scaled_to` > 0: decoded at the smallest of 1/8, 1/4, 1/2 and 1 of its size whose sides are both at least
// four fifths of that (other pixels than decoding all of it and shrinking, for a part of the time). Errors: cut,
// damaged, CMYK, too large.
Result<Image> decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& where, std::size_t scaled_to);

}  // namespace strata::data
