// SPDX-License-Identifier: Apache-2.0
// Convolution 3x3 with stride 1 by Winograd's minimal filtering, F(2x2,3x3) and F(4x4,3x3) (Lavin and Gray 2015,
// "Fast Algorithms for Convolutional Neural Networks"): 2.25 and 4 times fewer multiplications than the direct sum, and
// a larger rounding error. Float32, blocked layout (vector.hpp), OpenMP. Allocates nothing.
#pragma once

#include <cstddef>

#include "vector.hpp"
#include "winograd_cost.hpp"

namespace kit::kernels {

// groups = 1, dilation = 1; padding 0, 1 or 2 on all sides.
struct Convolution3x3 {
  int batch, in_channels, out_channels, height, width, padding;
  Activation activation;
  bool packs = false;  // weights are packed for every run, as in training
  int out_height() const { return height + 2 * padding - 2; }
  int out_width() const { return width + 2 * padding - 2; }
};

inline Work3x3 work_of(const Convolution3x3& shape) {
  return {double(shape.batch),
          double(shape.in_channels),
          double(shape.out_channels),
          double(shape.out_height()),
          double(shape.out_width()),
          kBlock,
          shape.packs};
}

// How the work is cut up. `tile`: outputs of a tile on a side, 2 or 4. `shared`: threads share the transformed input
// and divide the output channels (few tiles, weights read once), else each has tiles of its own. `tiles_at_once`:
// tiles that are transformed before they are multiplied.
struct WinogradPlan {
  int tile = 4;
  bool shared = false;
  int tiles_at_once = 24;
};

class Winograd {
 public:
  // The plan that should be fastest by the model of winograd_cost.hpp. Whether a direct sum would be faster still is
  // winograd_pays(work_of(shape), threads).
  static WinogradPlan plan(const Convolution3x3& shape, int threads);
  // `threads`: how many will run it, at most. The shape must have an output.
  Winograd(const Convolution3x3& shape, const WinogradPlan& plan, int threads);

  std::size_t weight_floats() const;
  std::size_t scratch_floats() const;
  // Weights O I 3 3 (contiguous, float32) into weight_floats(); transformed in float64, rounded once.
  void pack(const float* weights, float* packed) const;
  // The same from O/b I/b 3 3 b(I) b(O), channels padded with zeros to whole blocks.
  void pack_blocks(const float* weights, float* packed) const;
  // Of the convolution whose gradient with respect to its input this one is: from its weights in blocks, whose outputs
  // are this one's inputs. Taps are in reverse, and its padding is 2 less this one's.
  void pack_gradient(const float* weights, float* packed) const;
  // source N C/b H W b; packed from pack(); bias: padded(out_channels) or null; residual: like destination, may be it,
  // or null; scratch: scratch_floats(). source and destination do not overlap.
  void run(const float* source, const float* packed, const float* bias, const float* residual, float* destination,
           float* scratch) const;

 private:
  struct Call;
  template <int tile>
  struct Kernel;
  template <class TapsOf>
  void pack_taps(const TapsOf& taps_of, float* packed) const;

  Convolution3x3 shape_;
  WinogradPlan plan_;
  int threads_, tiles_down_, tiles_across_, tiles_;
};

}  // namespace kit::kernels
