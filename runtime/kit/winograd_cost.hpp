// SPDX-License-Identifier: Apache-2.0
// What a 3x3 convolution with stride 1 should take by Winograd's tiles or as a direct sum, from its shape alone: for
// strata's compiler, which chooses kernels, and for Winograd::plan, which chooses tiles. A model of multiplications,
// transforms and bytes of weights that agrees with what was measured (docs/results: kernels).
#pragma once

#include <algorithm>
#include <cmath>

namespace kit::kernels {

struct Work3x3 {
  double batch, in_channels, out_channels;
  double out_height, out_width;
  int block;           // floats of a vector, to which channels are padded
  bool packs = false;  // in every call, as in training
};

// Cycles of a core for the work of one thread of some; tile 0: the direct sum.
inline double cycles(const Work3x3& work, int tile, int threads) {
  constexpr double kMultiplyAdds = 2 * 0.85;  // vectors a cycle
  constexpr double kWeightBytes = 6;          // a cycle, of all cores together, from memory
  constexpr double kTransform = 8;            // cycles, of one vector of a point there and back
  constexpr double kPack = 30;                // cycles, of one vector of weights that are read or written
  const double block = work.block, in = std::ceil(work.in_channels / block) * block,
               out = std::ceil(work.out_channels / block) * block;
  const double step = std::max(tile, 1), size = tile == 0 ? 9 : (tile + 2) * (tile + 2);
  const double tiles = work.batch * std::ceil(work.out_height / step) * std::ceil(work.out_width / step);
  const double multiply = tiles * size * in * out / block / kMultiplyAdds / threads;
  const double read = size * in * out * 4 / kWeightBytes;
  const double transform = tile == 0 ? 0 : tiles * size * (in + out) / 2 / block * kTransform / threads;
  const double pack = tile == 0 || !work.packs ? 0 : (9 + size) * in * out / block * kPack / threads;
  return std::max(multiply, read) + 0.3 * std::min(multiply, read) + transform + pack;
}

// Outputs on a side of the tiles that should be fastest: 2 or 4.
inline int winograd_tile(const Work3x3& work, int threads) {
  return cycles(work, 2, threads) < cycles(work, 4, threads) ? 2 : 4;
}

inline bool winograd_pays(const Work3x3& work, int threads) {
  return cycles(work, winograd_tile(work, threads), threads) <= cycles(work, 0, threads);
}

}  // namespace kit::kernels
