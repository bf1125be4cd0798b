// SPDX-License-Identifier: Apache-2.0
// SGD as PyTorch has it: weight decay, momentum, dampening, Nesterov. Each parameter is read and written once.
#pragma once

#include <vector>

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

struct Sgd {
  double rate = 0, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

// The same numbers as a step uses them.
struct Rates {
  float rate = 0, decay = 0, before = 0, share = 1, of_velocity = 1, of_gradient = 0;
  bool plain = true;  // no momentum: no velocity is read or written
};
Rates rates_of(const Sgd& sgd, bool has_momentum);

// One parameter, which lies like its gradient and its velocity (null where the rates are plain).
void descend(Stream stream, const Rates& rates, float* weight, float* velocity, const float* gradient, Index count);

// The same with rates on the device, which a captured step reads anew each time it is run.
void descend(Stream stream, const Rates* rates, float* weight, float* velocity, const float* gradient, Index count);

// Many parameters by one kernel. They are cut into pieces of equal work, a list that has to lie on the device; so do
// the rates.
struct Piece {
  float *weight, *velocity;
  const float* gradient;
  Index count;
};
void add_pieces(std::vector<Piece>& pieces, float* weight, float* velocity, const float* gradient, Index count);
void descend_all(Stream stream, const Rates* rates, const Piece* pieces, Index count);

}  // namespace kit_cuda
