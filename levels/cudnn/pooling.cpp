// SPDX-License-Identifier: Apache-2.0
// Pooling and its gradients, by kernels of strata's. Maxima leave a byte each, where they were in their window.
#include "kit_cuda/kernels/pooling.hpp"

#include <algorithm>

#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Averaging;
using kit_cuda::Stream;

kit_cuda::Window window_of(const primitives::Window& from) {
  kit_cuda::Window window;
  std::copy(from.kernel.begin(), from.kernel.end(), window.kernel);
  std::copy(from.stride.begin(), from.stride.end(), window.stride);
  std::copy(from.dilation.begin(), from.dilation.end(), window.dilation);
  std::copy(from.before.begin(), from.before.end(), window.before);
  return window;
}

Tensor image_of(const Tensor& x, std::size_t rank) {
  if (x.dims().size() != rank + 2) throw Unsupported("pooling of an input without a batch");
  return x;
}

void max_into(Builder& b, const Tensor& x, std::size_t rank, Library::Left marks) {
  const Tensor y = b.result_like(x);
  const auto window = window_of(b.pooling_window(x.dims(), b.shape(), rank));
  b.own(
      [=](Stream stream) {
        kit_cuda::max_pool<std::uint8_t>(stream, x.source(), window, y.target(), {marks.bytes, marks.view});
      },
      x.view, y.view);
}

template <std::size_t rank>
void max_pool(Builder& b) {
  max_into(b, image_of(b.tensor("self"), rank), rank, {nullptr, {}});
}

void max_pool_with_marks(Builder& b) {
  const Tensor x = image_of(b.tensor("self"), 2);
  const auto kernel = b.integers("kernel_size", 2);
  if (product(kernel) > 255) throw Unsupported("maxima of windows of more than 255 elements, in training");
  const auto marks = b.library().allocate_bytes(Builder::view_like(b.shape(), x.view));
  b.leave(1, marks);
  max_into(b, x, 2, marks);
}

void max_pool_backward(Builder& b) {
  const auto marks = b.left("indices");
  const Tensor g = b.tensor("grad_output"), to = b.result_like(b.tensor("self"));
  const auto window = window_of(b.pooling_window(to.dims(), g.dims(), 2));
  b.own(
      [=](Stream stream) {
        kit_cuda::max_pool_backward<std::uint8_t>(stream, g.source(), {marks.bytes, marks.view}, window, to.target());
      },
      g.view, to.view);
}

Averaging averaging_of(Builder& b, const Dims& in, const Dims& out, std::size_t rank) {
  return {.window = window_of(b.pooling_window(in, out, rank)),
          .adaptive = false,
          .count_padding = b.flag("count_include_pad"),
          .divisor = b.has("divisor_override") ? b.number("divisor_override") : 0};
}

Averaging adaptive() {
  return {.window = {}, .adaptive = true};
}

void average(Builder& b, const Tensor& x, const Averaging& how) {
  const Tensor y = b.result_like(x);
  b.own([=](Stream stream) { kit_cuda::average_pool(stream, x.source(), how, y.target()); }, x.view, y.view);
}

template <std::size_t rank>
void avg_pool(Builder& b) {
  const Tensor x = image_of(b.tensor("self"), rank);
  average(b, x, averaging_of(b, x.dims(), b.shape(), rank));
}

template <std::size_t rank>
void adaptive_avg_pool(Builder& b) {
  average(b, image_of(b.tensor("self"), rank), adaptive());
}

void average_backward(Builder& b, const Averaging& how) {
  const Tensor g = b.tensor("grad_output"), to = b.result_like(b.tensor("self"));
  b.own([=](Stream stream) { kit_cuda::average_pool_backward(stream, g.source(), how, to.target()); }, g.view, to.view);
}

void avg_pool_backward(Builder& b) {
  average_backward(b, averaging_of(b, b.shape(), b.tensor("grad_output").dims(), 2));
}
void adaptive_avg_pool_backward(Builder& b) {
  average_backward(b, adaptive());
}

}  // namespace

void add_poolings(Operations& table) {
  table["max_pool1d"] = max_pool<1>;
  table["max_pool2d"] = max_pool<2>;
  table["max_pool3d"] = max_pool<3>;
  table["max_pool2d_with_indices"] = max_pool_with_marks;
  table["max_pool2d_with_indices_backward"] = max_pool_backward;
  table["avg_pool1d"] = avg_pool<1>;
  table["avg_pool2d"] = avg_pool<2>;
  table["avg_pool3d"] = avg_pool<3>;
  table["avg_pool2d_backward"] = avg_pool_backward;
  table["adaptive_avg_pool1d"] = adaptive_avg_pool<1>;
  table["adaptive_avg_pool2d"] = adaptive_avg_pool<2>;
  table["adaptive_avg_pool3d"] = adaptive_avg_pool<3>;
  table["_adaptive_avg_pool2d_backward"] = adaptive_avg_pool_backward;
}

}  // namespace strata::cudnn
