// SPDX-License-Identifier: Apache-2.0
// Sums, means, maxima and Euclidean norms over any dimensions, sums in float64.
#pragma once

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

enum class Reduction : std::uint8_t { sum, mean, largest, norm };

// `y` has the dimensions of `x`, with an extent of 1 where it is reduced.
void reduce(Stream stream, Source x, Reduction how, Target y);

}  // namespace kit_cuda
