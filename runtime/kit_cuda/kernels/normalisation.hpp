// SPDX-License-Identifier: Apache-2.0
// Batch norm in training, a kernel a direction with what stands beside it in networks (a sum, ReLU or clamp), and layer
// norm with its gradient. Statistics are computed in float64. Batch norm with given statistics: normalise() of
// elementwise.hpp.
#pragma once

#include <limits>

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

// y = clamp((x - mean) deviation scale + shift + summand) with the batch's mean and 1 / sqrt(variance + epsilon) over
// all but dimension 1, which are kept. running = (1 - momentum) old + momentum new, of the unbiased variance; old and
// new may be the same memory. Pointers may be null but for x, mean, deviation, y.
struct BatchNorm {
  Source x;
  const float *scale = nullptr, *shift = nullptr;
  Source summand;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  double epsilon = 0, momentum = 0;
  const float *old_mean = nullptr, *old_variance = nullptr;
  float *new_mean = nullptr, *new_variance = nullptr;
  float *mean = nullptr, *deviation = nullptr;
  Target y;
};
void batch_norm(Stream stream, const BatchNorm& how);

// new = (1 - momentum) old + momentum of the batch's, whose deviation is 1 / sqrt(variance + epsilon) over `count`
// places: for a batch norm that another library computed.
struct RunningStatistics {
  const float *mean = nullptr, *deviation = nullptr;
  Index channels = 0, count = 0;
  double epsilon = 0, momentum = 0;
  const float *old_mean = nullptr, *old_variance = nullptr;
  float *new_mean = nullptr, *new_variance = nullptr;
};
void run_statistics(Stream stream, const RunningStatistics& how);

// g = gradient + summand where low < activated < high, else 0; `masked` gets g. `variance` in place of `deviation`: the
// statistics were given, and stay as they are. Pointers may be null but for gradient, x, mean and one of these two.
struct BatchNormBackward {
  Source gradient, summand, activated;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  Source x;
  const float *mean = nullptr, *deviation = nullptr, *variance = nullptr, *scale = nullptr;
  double epsilon = 0;
  Target of_x, masked;
  float *of_scale = nullptr, *of_shift = nullptr;
};
void batch_norm_backward(Stream stream, const BatchNormBackward& how);

// Over rows of `length` elements, one row behind the other; scale and shift of `length` elements, and where each row's
// mean and 1 / sqrt(variance + epsilon) are kept, may be null.
struct LayerNorm {
  const float* x = nullptr;
  Index rows = 0, length = 0;
  const float *scale = nullptr, *shift = nullptr;
  double epsilon = 0;
  float *y = nullptr, *mean = nullptr, *deviation = nullptr;
};
void layer_norm(Stream stream, const LayerNorm& how);

// Results that are not wanted are null, as is a scale that there is not.
struct LayerNormBackward {
  const float *gradient = nullptr, *x = nullptr;
  Index rows = 0, length = 0;
  const float *mean = nullptr, *deviation = nullptr, *scale = nullptr;
  float *of_x = nullptr, *of_scale = nullptr, *of_shift = nullptr;
};
void layer_norm_backward(Stream stream, const LayerNormBackward& how);

}  // namespace kit_cuda
