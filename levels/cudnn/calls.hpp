// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's libraries compute for this level: convolutions and batch norms by cuDNN, products by cuBLAS. The level
// sees them through this interface alone, so that all else can be tested without a device (tests/levels/cudnn_host).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tensor.hpp"

namespace strata::cudnn {

// A call with its tensors bound; `run` starts it in the stream.
struct BoundCall {
  std::function<void()> run;
  std::string kernel;  // what the library says it runs; empty: it does not say
};

// Images N C and two or three spatial dimensions; padding alike on both sides; groups as the shapes say.
struct ConvolutionShape {
  enum class Direction : std::uint8_t { forward, of_input, of_weight };
  Direction direction = Direction::forward;
  View image, weight, result;
  Dims stride, dilation, padding;
  bool bfloat16 = false;  // all three, else float32
};
struct ConvolutionCall {
  ConvolutionShape shape;
  void *image = nullptr, *weight = nullptr, *result = nullptr;  // two are read, the one of `direction` is written
};

// to[i, r, c] = sum over k of left[i, r, k] right[i, k, c], row-major; in left and right one of the last two dimensions
// has stride 1.
struct ProductCall {
  struct Operand {
    const void* data;
    Index batch_stride, row_stride, column_stride;
  };
  Index batch = 1, rows = 1, columns = 1, inner = 1;
  Operand left, right;
  float* to = nullptr;
  bool bfloat16 = false;  // left and right, else float32
};

// By the batch's statistics, which are kept; `view`: of x and y.
struct BatchNormCall {
  View view;
  const float *x, *scale, *shift;
  float *y, *mean, *deviation;
  double epsilon;
};
struct BatchNormInferenceCall {
  View view;
  const float *x, *scale, *shift, *mean, *variance;
  float* y;
  double epsilon;
};
struct BatchNormBackwardCall {
  View view;
  const float *gradient, *x, *scale, *mean, *deviation;
  float *of_x, *of_scale, *of_shift;
  double epsilon;
};

class Calls {
 public:
  virtual ~Calls() = default;
  // Each throws Unsupported where the library has no kernel for the case.
  virtual BoundCall convolution(const ConvolutionCall& call) = 0;
  virtual BoundCall product(const ProductCall& call) = 0;
  virtual BoundCall batch_norm(const BatchNormCall& call) = 0;
  virtual BoundCall batch_norm(const BatchNormInferenceCall& call) = 0;
  virtual BoundCall batch_norm(const BatchNormBackwardCall& call) = 0;
  // After all calls are made: allocates the memory that they share. Returns how many bytes.
  virtual std::size_t finish() = 0;
};

// All work goes to `stream`; sums are float32. `tf32`: calls in float32 may round their factors to TF32.
std::unique_ptr<Calls> make_calls(kit_cuda::Stream stream, bool tf32);

// Of the libraries, and the device's name where there is one.
std::map<std::string, std::string> versions();

}  // namespace strata::cudnn
