// SPDX-License-Identifier: Apache-2.0
// One step of SGD on consecutive elements, as PyTorch has it; padding of blocks is zero in all tensors and stays so.
#pragma once

#include "kit/internals.hpp"

namespace kit {

// What all elements of a parameter have in common in this step.
struct Rates {
  float rate, decay, before, share, of_velocity, of_gradient;
  bool plain;  // no momentum
};

inline Rates rates_of(const Sgd& sgd, bool has_momentum) {
  return {sgd.rate,
          sgd.weight_decay,
          has_momentum ? sgd.momentum : 0.0F,
          has_momentum ? 1 - sgd.dampening : 1.0F,
          sgd.nesterov ? sgd.momentum : 1.0F,
          sgd.nesterov ? 1.0F : 0.0F,
          sgd.momentum == 0};
}

// `velocity` is read and written, but with plain rates. `gradient(i)`: that of element i.
template <class Gradient>
inline void descend_by(Rates rates, float* weight, float* velocity, Extent count, const Gradient& gradient) {
  if (rates.plain) {
#pragma omp simd
    for (Extent i = 0; i < count; ++i) weight[i] -= rates.rate * (gradient(i) + rates.decay * weight[i]);
    return;
  }
  // what a first step finds as momentum may be anything, NaN too
  if (rates.before == 0) std::fill_n(velocity, count, 0.0F);
#pragma omp simd
  for (Extent i = 0; i < count; ++i) {
    const float d = gradient(i) + rates.decay * weight[i];
    const float v = rates.before * velocity[i] + rates.share * d;
    velocity[i] = v;
    weight[i] -= rates.rate * (rates.of_gradient * d + rates.of_velocity * v);
  }
}

inline void descend(const Rates& rates, float* weight, float* velocity, const float* gradient, Extent count) {
  descend_by(rates, weight, velocity, count, [=](Extent i) { return gradient[i]; });
}

// A whole parameter by all threads; `gradient` lies as its home does.
inline void descend_all(Internals& in, int number, const float* gradient) {
  auto& one = in.weights[static_cast<std::size_t>(number)];
  const Rates rates = rates_of(in.training.sgd, one.has_momentum);
  float *weight = in.home(number), *velocity = in.momentum(number);
  const auto count = static_cast<Extent>(in.stored[static_cast<std::size_t>(one.home)].desc.get_size() / sizeof(float));
  constexpr Extent piece = 4096;  // elements; small parameters are one thread's
#pragma omp parallel for schedule(static) if (count > 4 * piece)
  for (Extent begin = 0; begin < count; begin += piece)
    descend(rates, weight + begin, velocity + begin, gradient + begin, std::min(piece, count - begin));
  one.has_momentum = one.has_momentum || !rates.plain;
}

// A parameter's update as a call; the gradient lies as its home does.
struct Descent {
  Internals* in;
  int weight;
  memory gradient;
  void operator()() const { descend_all(*in, weight, static_cast<const float*>(gradient.get_data_handle())); }
};

}  // namespace kit
