// SPDX-License-Identifier: Apache-2.0
// The inner product of all the kit's convolutions: a panel of at most kRows places, each with all input channels, times
// weights of one or two blocks of output channels, accumulated in registers.
#pragma once

#include <cstddef>

#include "vector.hpp"

namespace kit::kernels {

// sums[r][k] += over c: row[r][c / b * step[r] + c % b] * weights[c][k][:]. `row`: the places' first block of input
// channels, `step`: floats from one block to the next; weights contiguous. `ahead`: floats from a weight to one that is
// fetched meanwhile, since weights that a forward pass reads once come from memory.
template <int rows, int blocks, typename Steps>
KIT_INLINE void accumulate(Vector (&sums)[rows][blocks], const float* (&row)[rows], const Steps& step,
                           const float* weights, int channel_blocks, std::ptrdiff_t ahead) {
  for (int block = 0; block < channel_blocks; ++block) {
#pragma GCC unroll 16
    for (int c = 0; c < kBlock; ++c) {
      Vector w[blocks];
#pragma GCC unroll 2
      for (int k = 0; k < blocks; ++k) w[k] = load(weights + (c * blocks + k) * kBlock);
      if (c * blocks * kBlock % kLine == 0)
        for (int line = 0; line < blocks * kBlock; line += kLine)
          __builtin_prefetch(weights + c * blocks * kBlock + line + ahead);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int k = 0; k < blocks; ++k) sums[r][k] += row[r][c] * w[k];
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) row[r] += step[r];
    weights += kBlock * blocks * kBlock;
  }
}

// The same with rows one block apart, in panels [c / b][r][b].
template <int rows, int blocks>
KIT_INLINE void accumulate_panel(Vector (&sums)[rows][blocks], const float* panel, const float* weights,
                                 int channel_blocks, std::ptrdiff_t ahead) {
  for (int block = 0; block < channel_blocks; ++block, panel += rows * kBlock, weights += kBlock * blocks * kBlock) {
    const float* row[rows];
    for (int r = 0; r < rows; ++r) row[r] = panel + r * kBlock;
    constexpr std::ptrdiff_t kStay[rows] = {};
    accumulate<rows, blocks>(sums, row, kStay, weights, 1, ahead);
  }
}

// Calls f.template operator()<rows>() for a number of rows known when it runs.
template <int most, typename F>
KIT_INLINE void with_rows(int rows, const F& f) {
  if constexpr (most > 1) {
    if (rows < most) return with_rows<most - 1>(rows, f);
  }
  f.template operator()<most>();
}

}  // namespace kit::kernels
