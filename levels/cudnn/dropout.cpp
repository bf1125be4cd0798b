// SPDX-License-Identifier: Apache-2.0
// Dropout by strata's kernels: each element has a number of its own, from the step and its place.
#include "kit_cuda/kernels/dropout.hpp"

#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Stream;

void forward(Builder& b) {
  const Tensor x = b.tensor("input"), y = b.result_like(x);
  const auto mask = b.library().allocate_bytes(y.view);
  b.leave(1, mask);
  const kit_cuda::Dropout how{b.dropout(), static_cast<std::uint64_t>(b.first_output()), b.number("p")};
  b.own(
      [=](Stream stream) {
        kit_cuda::dropout(stream, how, x.source(), {mask.bytes, mask.view}, y.target());
      },
      x.view, y.view);
}

void backward(Builder& b) {
  const auto mask = b.left("mask");
  const Tensor g = b.tensor("grad_output"), to = b.result(mask.view);
  const auto* state = b.dropout();
  const auto scale = static_cast<float>(b.number("scale"));
  b.own(
      [=](Stream stream) {
        kit_cuda::dropout_backward(stream, state, g.source(), {mask.bytes, mask.view}, scale, to.target());
      },
      g.view, to.view);
}

}  // namespace

void add_dropouts(Operations& table) {
  table["native_dropout"] = forward;
  table["native_dropout_backward"] = backward;
}

}  // namespace strata::cudnn
