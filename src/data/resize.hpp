// SPDX-License-Identifier: Apache-2.0
// Images to another size: a triangle filter as wide as the step (bilinear, antialiased), in whole numbers, so that
// every machine makes the same pixels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.hpp"
#include "data/image.hpp"

namespace strata::data {

// `planes`: [3, side, side]. Rounded once, at the end: within one step of Pillow's resize(BILINEAR), which rounds
// twice.
// `vectors`: with AVX2 where there is any; the same values without, for tests.
void resize_to_square(const Image& image, std::size_t side, std::span<std::uint8_t> planes, bool vectors = true);

// [channels, height, width] to the height and width of `to`, as the images of data sets are stored.
std::vector<std::uint8_t> resize_planes(std::span<const std::uint8_t> image, const Shape& from, const Shape& to);

}  // namespace strata::data
