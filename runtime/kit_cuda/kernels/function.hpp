// SPDX-License-Identifier: Apache-2.0
// kit::Function and its derivative on the device, with PyTorch's formulas; NaN stays NaN.
#pragma once

#include <cmath>

#include "kit/function.hpp"
#include "kit_cuda/kernels/loop.hpp"

namespace kit_cuda {

using kit::Function;

namespace internal {

constexpr float tanh_of_gelu = 0.79788456F, cube_of_gelu = 0.044715F, root_half = 0.70710678F,
                density_at_0 = 0.39894228F;

KIT_DEVICE inline float logistic(float x) {
  return 1 / (1 + expf(-x));
}
KIT_DEVICE inline float between(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}

}  // namespace internal

KIT_DEVICE inline float value_of(const Function& f, float x) {
  using Kind = Function::Kind;
  using internal::between, internal::logistic;
  switch (f.kind) {
    case Kind::relu:
      return x < 0 ? f.alpha * x : x;
    case Kind::clip:
      return between(x, f.alpha, f.beta);
    case Kind::hardswish:
      return x * between(f.alpha * x + f.beta, 0, 1);
    case Kind::hardsigmoid:
      return between(f.alpha * x + f.beta, 0, 1);
    case Kind::swish:
      return x / (1 + expf(-f.alpha * x));
    case Kind::logistic:
      return logistic(x);
    case Kind::tanh:
      return tanhf(x);
    case Kind::elu:
      return x > 0 ? x : f.alpha * expm1f(x);
    case Kind::gelu_erf:
      return 0.5F * x * (1 + erff(x * internal::root_half));
    case Kind::gelu_tanh:
      return 0.5F * x * (1 + tanhf(internal::tanh_of_gelu * (x + internal::cube_of_gelu * x * x * x)));
    case Kind::exp:
      return expf(x);
    case Kind::sqrt:
      return sqrtf(x);
    case Kind::abs:
      return fabsf(x);
    case Kind::square:
      return x * x;
    case Kind::linear:
      return f.alpha * x + f.beta;
  }
  return x;
}

// From the function's operand.
KIT_DEVICE inline float derivative_at(const Function& f, float x) {
  using Kind = Function::Kind;
  using namespace internal;
  switch (f.kind) {
    case Kind::relu:
      return x > 0 ? 1 : f.alpha;
    case Kind::clip:
      return x > f.alpha && x < f.beta ? 1 : 0;
    case Kind::hardswish: {
      const float z = f.alpha * x + f.beta;
      return z <= 0 ? 0 : z >= 1 ? 1 : z + f.alpha * x;
    }
    case Kind::hardsigmoid: {
      const float z = f.alpha * x + f.beta;
      return z > 0 && z < 1 ? f.alpha : 0;
    }
    case Kind::swish: {
      const float s = logistic(f.alpha * x);
      return s * (1 + f.alpha * x * (1 - s));
    }
    case Kind::logistic: {
      const float s = logistic(x);
      return s * (1 - s);
    }
    case Kind::tanh: {
      const float t = tanhf(x);
      return 1 - t * t;
    }
    case Kind::elu:
      return x > 0 ? 1 : f.alpha * expf(x);
    case Kind::gelu_erf:
      return 0.5F * (1 + erff(x * root_half)) + x * density_at_0 * expf(-0.5F * x * x);
    case Kind::gelu_tanh: {
      const float t = tanhf(tanh_of_gelu * (x + cube_of_gelu * x * x * x));
      return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * tanh_of_gelu * (1 + 3 * cube_of_gelu * x * x);
    }
    case Kind::exp:
      return expf(x);
    case Kind::sqrt:
      return 0.5F / sqrtf(x);
    case Kind::abs:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Kind::square:
      return 2 * x;
    case Kind::linear:
      return f.alpha;
  }
  return 1;
}

// From its result, for those functions whose result tells.
KIT_DEVICE inline float derivative_by_result(const Function& f, float y) {
  using Kind = Function::Kind;
  switch (f.kind) {
    case Kind::logistic:
      return y * (1 - y);
    case Kind::tanh:
      return 1 - y * y;
    case Kind::elu:
      return y > 0 ? 1 : y + f.alpha;
    case Kind::exp:
      return y;
    case Kind::sqrt:
      return 0.5F / y;
    default:  // relu, clip and linear, which are the same from their operand
      return derivative_at(f, y);
  }
}

}  // namespace kit_cuda
