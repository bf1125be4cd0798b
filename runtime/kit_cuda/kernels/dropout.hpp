// SPDX-License-Identifier: Apache-2.0
// Dropout without a generator: each element has a number of its own, a hash of the step, its layer and its place
// (splitmix64: Steele, Lea and Flood 2014).
#pragma once

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

// On the device, shared by all dropouts of a program, so that a captured step can be run again and again.
struct DropoutState {
  std::uint64_t step = 0;
  std::uint64_t on = 1;  // 0: everything is handed on
};
void count_step(Stream stream, DropoutState* state);  // once a step, before the first dropout

// Keeps an element with probability 1 - p, divided by it. `mask`: 1 where it was kept.
struct Dropout {
  const DropoutState* state = nullptr;
  std::uint64_t layer = 0;  // a number that no other dropout has
  double p = 0;
};
void dropout(Stream stream, const Dropout& how, Source x, Strided<std::uint8_t> mask, Target y);
// `scale`: 1 / (1 - p)
void dropout_backward(Stream stream, const DropoutState* state, Source gradient, Strided<const std::uint8_t> mask,
                      float scale, Target to);

}  // namespace kit_cuda
