// SPDX-License-Identifier: Apache-2.0
// One step of SGD or Adam on consecutive elements, as PyTorch has them; padding of blocks is zero in all tensors and
// stays so.
#pragma once

#include <cmath>

#include "kit/internals.hpp"

namespace kit {

// What all elements of a parameter have in common in this step of SGD.
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

// The same of Adam's step: m = beta1 m + share1 d, v = beta2 v + share2 d d with d = g + decay w; w = decay_factor w -
// rate m / (sqrt(v) / root + eps).
struct AdamRates {
  float beta1, share1, beta2, share2, decay, decay_factor, rate, root, eps;
  bool first;  // no buffers yet
};

// Of the step after `done` others.
inline AdamRates rates_of(const Adam& adam, std::int64_t done, bool has_buffers) {
  const auto t = static_cast<double>(done + 1);
  const auto narrow = [](double value) { return static_cast<float>(value); };
  return {narrow(adam.beta1),
          narrow(1 - adam.beta1),
          narrow(adam.beta2),
          narrow(1 - adam.beta2),
          adam.decoupled ? 0.0F : narrow(adam.weight_decay),
          adam.decoupled ? narrow(1 - adam.rate * adam.weight_decay) : 1.0F,
          narrow(adam.rate / (1 - std::pow(adam.beta1, t))),
          narrow(std::sqrt(1 - std::pow(adam.beta2, t))),
          narrow(adam.eps),
          !has_buffers};
}

template <class Gradient>
inline void descend_by(AdamRates a, float* weight, float* mean, float* square, Extent count, const Gradient& gradient) {
  if (a.first) {
    std::fill_n(mean, count, 0.0F);
    std::fill_n(square, count, 0.0F);
  }
#pragma omp simd
  for (Extent i = 0; i < count; ++i) {
    const float d = gradient(i) + a.decay * weight[i];
    const float m = a.beta1 * mean[i] + a.share1 * d, v = a.beta2 * square[i] + a.share2 * d * d;
    mean[i] = m;
    square[i] = v;
    weight[i] = a.decay_factor * weight[i] - a.rate * m / (std::sqrt(v) / a.root + a.eps);
  }
}

// Where a parameter and its buffers lie.
struct Place {
  float *weight, *first, *second;  // the last is Adam's alone
  Place at(Extent i) const { return {weight + i, first + i, second == nullptr ? nullptr : second + i}; }
};

// A step of either.
struct Descending {
  Rates sgd;
  AdamRates adam;
  bool is_adam;
  float clipped = 1;  // what with() multiplies gradients by

  template <class Gradient>
  void by(const Place& place, Extent count, const Gradient& gradient) const {
    if (is_adam)
      descend_by(adam, place.weight, place.first, place.second, count, gradient);
    else
      descend_by(sgd, place.weight, place.first, count, gradient);
  }
  void with(const Place& place, const float* gradient, Extent count) const {
    by(place, count, [=, share = clipped](Extent i) { return share * gradient[i]; });
  }
  bool keeps_buffers() const { return is_adam || !sgd.plain; }
};

inline Descending descending(const TrainingState& training, bool has_buffers) {
  return {rates_of(training.sgd, has_buffers),
          training.is_adam ? rates_of(training.adam, training.steps, has_buffers) : AdamRates(), training.is_adam};
}

inline Place place_of(Internals& in, int weight) {
  return {in.home(weight), in.momentum(weight), in.training.is_adam ? in.square(weight) : nullptr};
}

// A whole parameter by all threads; `gradient` lies as its home does.
inline void descend_all(Internals& in, int number, const float* gradient, float clipped = 1) {
  auto& entry = in.weights[static_cast<std::size_t>(number)];
  auto step = descending(in.training, entry.has_momentum);
  step.clipped = clipped;
  const auto place = place_of(in, number);
  const auto count =
      static_cast<Extent>(in.stored[static_cast<std::size_t>(entry.home)].desc.get_size() / sizeof(float));
  constexpr Extent piece = 4096;  // elements; small parameters are one thread's
#pragma omp parallel for schedule(static) if (count > 4 * piece)
  for (Extent begin = 0; begin < count; begin += piece)
    step.with(place.at(begin), gradient + begin, std::min(piece, count - begin));
  entry.has_momentum = entry.has_momentum || step.keeps_buffers();
}

// A parameter's update as a call; the gradient lies as its home does.
struct Descent {
  Internals* in;
  int weight;
  memory gradient, share;  // the last may be none
  void operator()() const {
    descend_all(*in, weight, static_cast<const float*>(gradient.get_data_handle()),
                share ? *static_cast<const float*>(share.get_data_handle()) : 1.0F);
  }
};

}  // namespace kit
