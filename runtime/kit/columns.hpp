// SPDX-License-Identifier: Apache-2.0
// Images taken apart into the windows of a kernel and put together again (PyTorch's unfold and fold, im2col and
// col2im): row-major float32. No library is needed.
#pragma once

#include <algorithm>

#include "kit/tensor.hpp"

namespace kit {

// Of rows and columns; pixels beyond the image are 0.
struct WindowsOfImages {
  Extent images = 1;  // with their channels
  Extent size[2] = {}, kernel[2] = {}, dilation[2] = {}, padding[2] = {}, stride[2] = {};

  Extent windows(int d) const { return (size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1; }

  // [images, rows, columns] -> [images, kernel, kernel, windows, windows]
  void take_apart(const float* image, float* columns) const {
    const Extent places = kernel[0] * kernel[1], height = windows(0), width = windows(1);
#pragma omp parallel for schedule(static)
    for (Extent i = 0; i < images * places; ++i) {
      const float* from = image + i / places * size[0] * size[1];
      float* to = columns + i * height * width;
      const Extent y = i % places / kernel[1] * dilation[0] - padding[0], x = i % kernel[1] * dilation[1] - padding[1];
      for (Extent row = 0; row < height; ++row, to += width) {
        const Extent at = y + row * stride[0];
        for (Extent column = 0; column < width; ++column)
          to[column] = at < 0 || at >= size[0] ? 0.0F : pixel(from + at * size[1], x + column * stride[1]);
      }
    }
  }

  // The reverse: what comes from one pixel is added.
  void put_together(const float* columns, float* image) const {
    const Extent places = kernel[0] * kernel[1], windows_of_one = windows(0) * windows(1);
#pragma omp parallel for schedule(static)
    for (Extent i = 0; i < images; ++i) {
      float* to = image + i * size[0] * size[1];
      std::fill_n(to, size[0] * size[1], 0.0F);
      for (Extent place = 0; place < places; ++place) add(columns + (i * places + place) * windows_of_one, place, to);
    }
  }

 private:
  float pixel(const float* row, Extent x) const {
    return x < 0 || x >= size[1] ? 0.0F : row[x];
  }

  void add(const float* from, Extent place, float* image) const {
    const Extent height = windows(0), width = windows(1);
    const Extent y = place / kernel[1] * dilation[0] - padding[0], x = place % kernel[1] * dilation[1] - padding[1];
    for (Extent row = 0; row < height; ++row, from += width) {
      const Extent at = y + row * stride[0];
      if (at < 0 || at >= size[0]) continue;
      for (Extent column = 0; column < width; ++column)
        if (const Extent to = x + column * stride[1]; to >= 0 && to < size[1]) image[at * size[1] + to] += from[column];
    }
  }
};

}  // namespace kit
