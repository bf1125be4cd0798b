// SPDX-License-Identifier: Apache-2.0
// The negative log-likelihood of labels, by kernels of strata's.
#include <fmt/format.h>

#include "kit_cuda/kernels/softmax.hpp"
#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Stream;

Tensor labels_of(Builder& b, const Dims& scores) {
  if (scores.size() != 2) throw Unsupported("a loss of scores that are not [batch, classes]");
  if (b.has("weight") || b.integer("reduction") != 1) throw Unsupported("a loss with weights, or not the mean");
  return b.rows("target");
}

void forward(Builder& b) {
  const Tensor x = b.tensor("self"), labels = labels_of(b, x.dims());
  const Tensor loss = b.result(row_major({1})), count = b.result(row_major({1}), 1);
  auto* fault = b.library().fault(labels, [classes = x.dims()[1]](std::int64_t label) {
    return fmt::format("the label {} of {} classes", label, classes);
  });
  b.own(
      [=](Stream stream) {
        kit_cuda::likelihood(stream, x.source(), labels.int64_data(), loss.data(), count.data(), fault);
      },
      x.view, loss.view);
}

void backward(Builder& b) {
  const Tensor labels = labels_of(b, b.shape()), gradient = b.tensor("grad_output"),
               to = b.result(row_major(b.shape()));
  b.own(
      [=](Stream stream) { kit_cuda::likelihood_backward(stream, gradient.data(), labels.int64_data(), to.target()); },
      gradient.view, to.view);
}

}  // namespace

void add_losses(Operations& table) {
  table["nll_loss_forward"] = forward;
  table["nll_loss_backward"] = backward;
}

}  // namespace strata::cudnn
