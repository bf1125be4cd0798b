// SPDX-License-Identifier: Apache-2.0
// Maxima and averages over windows of images N C, then one to three spatial dimensions, in any layout, and their
// gradients, which are gathered: no two threads write one place, and every run adds up in the same order.
#pragma once

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

constexpr int most_spatial = 3;

// Along the spatial dimensions, of which there are as many as the tensors have beside N and C.
struct Window {
  Index kernel[most_spatial] = {1, 1, 1}, stride[most_spatial] = {1, 1, 1}, dilation[most_spatial] = {1, 1, 1},
        before[most_spatial] = {};
};

// `index` says for each result where its maximum is: as a byte the place in the window (of at most 255 elements), as
// int64 the place in the image, as PyTorch has it. It may be null.
template <class Place>
void max_pool(Stream stream, Source x, const Window& window, Target y, Strided<Place> index);
template <class Place>
void max_pool_backward(Stream stream, Source gradient, Strided<const Place> index, const Window& window, Target to);

// Windows of PyTorch's average pooling, of which the last may lie in part outside; or adaptive ones, which are as even
// as the extents allow (`window` is then not read).
struct Averaging {
  Window window;
  bool adaptive = false;
  bool count_padding = true;
  double divisor = 0;  // 0: the number of elements of the window
};
void average_pool(Stream stream, Source x, const Averaging& how, Target y);
void average_pool_backward(Stream stream, Source gradient, const Averaging& how, Target to);

}  // namespace kit_cuda
