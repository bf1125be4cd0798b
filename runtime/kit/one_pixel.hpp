// SPDX-License-Identifier: Apache-2.0
// A 1x1 convolution that gives images of one pixel is a product of matrices, for which the library is several times as
// fast as its convolutions are. Used in training, where weights lie row-major for all three products.
#pragma once

#include "kit/internals.hpp"
#include "kit/operations.hpp"

namespace kit {

// `weight`: its shape; `image`: what the convolution reads.
bool gives_one_pixel(const Tensor& image, const Shape& weight, const Tensor& result, const Shape& before,
                     Extent groups);
// The image's pixel that is read, as rows [batch, channels]: the image itself, or a copy.
Tensor rows_of_pixels(Program& program, const Tensor& image);
// Writes rows back into an image that is zero elsewhere.
void put_rows_into(Program& program, const Tensor& rows, const Tensor& image);
Tensor as_rows(const Tensor& image);  // of one pixel

}  // namespace kit
