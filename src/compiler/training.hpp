// SPDX-License-Identifier: Apache-2.0
// From a training graph (graph/backward) to the first program of a training step. What the step changes becomes steps
// of its own, whose results ("effects") have no elements and stand among the graph's updates. Operations that are made,
// beside those of step_builder.hpp:
//   strata.convolution_backward_data(gradient, weight)
//   strata.train_convolution(gradient, source, weight, bias)     gradients of weight and bias, and their update
//   strata.convolution_backward_weights(gradient, source)        the gradients alone, row-major
//   strata.batch_norm_train(source, scale, shift, running_mean, running_var) -> y, mean, deviation, effect
//   strata.batch_norm_backward(gradient, source, scale, mean, deviation, shift) -> dx, dscale, dshift, effect;
//       `trains` says which of scale and shift it updates. With fuse_gradients also summand, result, low, high, and
//       the masked gradient as a fifth result.
//   strata.clamp_backward(gradient, result)                      gradient where low < result < high
//   strata.max_pool_train(source) -> y, workspace; strata.max_pool_backward(gradient, workspace)
//   strata.avg_pool_backward(gradient), strata.adaptive_avg_pool_backward(gradient)
//   strata.dropout_train(source) -> y, mask; strata.dropout_backward(gradient, mask); strata.dropout_again(source,
//   mask),
//       which gives y once more (passes/recompute.cpp)
//   strata.nll_loss(scores), strata.nll_loss_backward(scores)    of the labels, which are no value of the program
//   strata.log_softmax(scores), strata.log_softmax_backward(gradient, result)
//   strata.sgd(parameter, gradient, share), strata.count(buffer)
//   strata.clip_gradients(gradients, norm) -> share              [1], what each is multiplied by
//   strata.sgd_of_product(parameter, left, right)                with fuse_gradients: the gradient is left * right
// A workspace or mask is float32 [n], n its bytes in any layout divided by 4 and rounded up.
#pragma once

#include "compiler/program.hpp"
#include "graph/backward/backward.hpp"

namespace strata::compiler {

// As lower(). The labels are no input any more, the loss is the only output. A parameter is updated as soon as its
// gradient is known and nothing else reads it; where gradients are clipped, when all are known. Errors: those of
// lower(), an operation of a training graph that has no step, with its place in the model.
Result<Program> lower_training(graph::TrainingGraph training, std::int64_t block = 16);

}  // namespace strata::compiler
