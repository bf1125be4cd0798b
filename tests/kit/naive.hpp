// SPDX-License-Identifier: Apache-2.0
// What the tests of the kit's kernels share: random tensors, the blocked layout, and a convolution in float64 written
// as its definition.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "kit/vector.hpp"

// Tests are compiled for several widths and instruction sets (CMakeLists.txt), each in a suite of its own.
#ifndef KIT_VARIANT
#define KIT_VARIANT
#endif
#define KIT_PASTE(a, b) a##b
#define KIT_PASTE_VALUES(a, b) KIT_PASTE(a, b)
#define KIT_TESTS_OF(name) KIT_PASTE_VALUES(name, KIT_VARIANT)

namespace kit::kernels::test {

inline std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (auto& v : out) v = normal(engine);
  return out;
}

// N C H W to N C/b H W b; padded channels are 0.
inline std::vector<float> to_blocked(const std::vector<float>& plain, int batch, int channels, int places) {
  std::vector<float> out(std::size_t(batch) * padded(channels) * places);
  for (int n = 0; n < batch; ++n)
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < places; ++i)
        out[((std::size_t(n) * blocks_of(channels) + c / kBlock) * places + i) * kBlock + c % kBlock] =
            plain[(std::size_t(n) * channels + c) * places + i];
  return out;
}

inline std::vector<float> from_blocked(const float* blocked, int batch, int channels, int places) {
  std::vector<float> out(std::size_t(batch) * channels * places);
  for (int n = 0; n < batch; ++n)
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < places; ++i)
        out[(std::size_t(n) * channels + c) * places + i] =
            blocked[((std::size_t(n) * blocks_of(channels) + c / kBlock) * places + i) * kBlock + c % kBlock];
  return out;
}

struct NaiveConvolution {
  int batch, in_channels, out_channels, height, width, kernel, stride, padding, dilation = 1;
  int out_height() const { return (height + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1; }
  int out_width() const { return (width + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1; }

  // Source N C H W, weights O I K K, bias O; in float64.
  std::vector<double> operator()(const std::vector<float>& source, const std::vector<float>& weights,
                                 const std::vector<float>& bias) const {
    std::vector<double> out;
    for (int n = 0; n < batch; ++n)
      for (int o = 0; o < out_channels; ++o)
        for (int y = 0; y < out_height(); ++y)
          for (int x = 0; x < out_width(); ++x) out.push_back(bias[o] + sum(source, weights, n, o, y, x));
    return out;
  }

 private:
  double sum(const std::vector<float>& source, const std::vector<float>& weights, int n, int o, int y, int x) const {
    double total = 0;
    for (int c = 0; c < in_channels; ++c)
      for (int ky = 0; ky < kernel; ++ky)
        for (int kx = 0; kx < kernel; ++kx) {
          const int sy = y * stride + ky * dilation - padding, sx = x * stride + kx * dilation - padding;
          if (sy < 0 || sx < 0 || sy >= height || sx >= width) continue;
          total += double(source[((std::size_t(n) * in_channels + c) * height + sy) * width + sx]) *
                   weights[((std::size_t(o) * in_channels + c) * kernel + ky) * kernel + kx];
        }
    return total;
  }
};

// ||got - expected|| / ||expected||, as the proof of equal work has it.
inline double relative_error(const std::vector<float>& got, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace kit::kernels::test
