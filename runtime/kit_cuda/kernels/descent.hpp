// SPDX-License-Identifier: Apache-2.0
// SGD as PyTorch has it: weight decay, momentum, dampening, Nesterov; Adam and AdamW. Each parameter is read and
// written once.
#pragma once

#include <vector>

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

struct Sgd {
  double rate = 0, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

struct Adam {
  double rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
};

// The same numbers as a step uses them: of SGD, or of Adam d = g + decay w; m = before m + share d; v = square_before v
// + square_share d d; w = decay_factor w - rate m / (sqrt(v) / root + eps).
struct Rates {
  float rate = 0, decay = 0, before = 0, share = 1, of_velocity = 1, of_gradient = 0;
  float square_before = 0, square_share = 0, decay_factor = 1, root = 1, eps = 0;
  int plain = 1;  // no momentum: no velocity is read or written
  int adam = 0, first = 0;
};
Rates rates_of(const Sgd& sgd, bool has_momentum);
Rates rates_of(const Adam& adam, std::int64_t done, bool has_buffers);  // of the step after `done` others

// A parameter and its buffers, which lie alike: SGD's velocity (null where the rates are plain), Adam's two.
struct Place {
  float *weight, *first = nullptr, *second = nullptr;
};

// One parameter, which lies like its gradient.
void descend(Stream stream, const Rates& rates, Place place, const float* gradient, Index count);

// The same with rates on the device, which a captured step reads anew each time it is run.
void descend(Stream stream, const Rates* rates, Place place, const float* gradient, Index count);

// Many parameters by one kernel. They are cut into pieces of equal work, a list that has to lie on the device; so do
// the rates.
struct Piece {
  Place place;
  const float* gradient;
  Index count;
};
void add_pieces(std::vector<Piece>& pieces, Place place, const float* gradient, Index count);
void descend_all(Stream stream, const Rates* rates, const Piece* pieces, Index count);

}  // namespace kit_cuda
