// SPDX-License-Identifier: Apache-2.0
// Convolution as a direct sum, any kernel, stride, dilation and padding (groups = 1), on the blocked layout
// (vector.hpp): 1x1, 3x3 with stride 2, tiny images, and a linear layer after a flatten (a kernel as large as the
// image). Places of the output are taken some at a time through pointers to what each tap reads, across rows and images
// (the idea of Dukhan 2019, "The Indirect Convolution Algorithm"). Taps that only ever meet padding are dropped with
// their weights.
#pragma once

#include <cstddef>
#include <vector>

#include "vector.hpp"

namespace kit::kernels {

struct Convolution {
  int batch, in_channels, out_channels, height, width;
  int kernel_height, kernel_width, stride_height, stride_width, pad_top, pad_left;
  int out_height, out_width;  // PyTorch's, which also gives the padding below and right
  int dilation_height = 1, dilation_width = 1;
  Activation activation;
};

// `channel_threads`: parts that the output channels are divided into, the rest of the threads divide the places; few
// places and many weights: all threads. `tiles_at_once`: groups of kRows places that share weights from the cache.
struct DirectPlan {
  int channel_threads = 1;
  int tiles_at_once = 16;
};

class Direct {
 public:
  // A plan that measured well for shapes like this one.
  static DirectPlan plan(const Convolution& shape, int threads);
  // `threads`: how many will run it, at most. The shape must have an output.
  Direct(const Convolution& shape, const DirectPlan& plan, int threads);

  std::size_t weight_floats() const;
  static constexpr std::size_t scratch_floats() { return 0; }
  // Weights O I H W (contiguous, float32) into weight_floats().
  void pack(const float* weights, float* packed) const;
  // source N C/b H W b; packed from pack(); bias: padded(out_channels) or null; residual: like destination, may be it,
  // or null. source and destination do not overlap. `scratch` is not used.
  void run(const float* source, const float* packed, const float* bias, const float* residual, float* destination,
           float* scratch = nullptr) const;

 private:
  struct Call;
  struct Tap {
    int y, x;  // within the kernel
  };

  Convolution shape_;
  DirectPlan plan_;
  int threads_, places_;
  std::vector<Tap> taps_;  // that some output reads
};

}  // namespace kit::kernels
