// SPDX-License-Identifier: Apache-2.0
// What a stage of a training step is made of, beside operations.hpp: gradients, statistics, updates. A parameter is
// changed by the step that computes its gradient, where nothing else reads it, so that a gradient lives in scratch
// memory for one call. Formulas are PyTorch's.
#pragma once

#include "kit/operations.hpp"

namespace kit {

// Of its input; `gradient` is that of the result.
struct ConvolutionBackwardData {
  Tensor gradient;
  Weight weight;
  Tensor result;
  Shape stride, dilation, before, after;
  Extent groups = 1;
};
void convolution_backward_data(Program& program, const ConvolutionBackwardData& how);
void winograd_backward_data(Program& program, const ConvolutionBackwardData& how);  // 3x3 with stride 1

// Of weight [shape] and bias: into `of_weight` and `of_bias`, row-major; or, where `weight` and `bias` are parameters,
// straight into their update.
struct ConvolutionBackwardWeights {
  Tensor gradient, source;
  Shape shape;
  Weight weight, bias;
  Tensor of_weight, of_bias;
  Shape stride, dilation, before, after;
  Extent groups = 1;
};
void convolution_backward_weights(Program& program, const ConvolutionBackwardWeights& how);

// g = gradient + summand where low < activated < high, else 0; each of the last two may be left out. `masked` gets g.
// Scale and shift are updated where `trains` says so; their gradients go to of_scale and of_shift.
struct BatchNormBackward {
  Tensor gradient, summand, activated;
  float low = 0, high = 0;
  Tensor source, mean, deviation;
  Weight scale, shift;
  bool trains_scale = false, trains_shift = false, fixed_statistics = false;
  Tensor result, of_scale, of_shift, masked;
};
void batch_norm_backward(Program& program, const BatchNormBackward& how);

// By the mean and deviation that the forward step keeps. What is left out of the last three is not computed.
struct LayerNormBackward {
  Tensor gradient, source, mean, deviation;
  Weight scale;  // may be left out
  Extent over = 1;
  Tensor result, of_scale, of_shift;
};
void layer_norm_backward(Program& program, const LayerNormBackward& how);

// Of a recurrent layer, by what its forward step read, gave and kept (RecurrentLayer). `gradient` is that of the
// result, `of_last_state` and `of_last_cell` those of the last ones. What is left out of those behind is not given;
// weights are row-major.
struct RecurrentBackward {
  Recurrence kind = Recurrence::tangent;
  bool reverse = false;
  Tensor source, state, cell;
  Weight inner, outer, inner_bias, outer_bias;
  Tensor result, last_state, last_cell, workspace;
  Tensor gradient, of_last_state, of_last_cell;
  Tensor of_source, of_inner, of_outer, of_inner_bias, of_outer_bias, of_state, of_cell;
};
void recurrent_backward(Program& program, const RecurrentBackward& how);

// The sum, in each row of a table, of the source's parts along its first dimension for which `rows` names that row:
// the gradient of look_up().
void add_rows(Program& program, const LookUp& how);

// gradient where low < activated < high, else 0.
struct ClampBackward {
  Tensor gradient, activated;
  float low = 0, high = 0;
  Tensor result;
};
void clamp_backward(Program& program, const ClampBackward& how);

// `source`: the function's operand, or its result where `of_result`.
struct ApplyBackward {
  Tensor gradient, source;
  Function function;
  bool of_result = false;
  Tensor result;
};
void apply_backward(Program& program, const ApplyBackward& how);

// `workspace`: where the maxima are, for the gradient.
void max_pool_training(Program& program, const Pool& how, const Tensor& workspace);
// `source` is the gradient, `result` that of the pooling's source; `workspace` may be left out but for maxima.
void pool_backward(Program& program, Pool::Kind kind, const Pool& how, const Tensor& workspace = {});

void uneven_average_pool_backward(Program& program, const UnevenPool& how);  // likewise

// Each element is kept with probability 1 - p and divided by it. `mask`: a byte an element.
struct Dropout {
  Tensor source, result, mask;
  double p = 0;
};
void dropout(Program& program, const Dropout& how);
void dropout_again(Program& program, const Dropout& how);  // by the mask that dropout() wrote in this step
struct DropoutBackward {
  Tensor gradient, mask;
  float scale = 1;
  Tensor result;
};
void dropout_backward(Program& program, const DropoutBackward& how);

// Of rows [batch, classes].
struct Scores {
  Tensor source, result;
};
void exact_log_softmax(Program& program, const Scores& how);  // in float64, as a loss needs it
// Of softmax or log_softmax, along any axis; `source` is the function's result.
struct SoftmaxBackward {
  Tensor gradient, source, result;
  int axis = 0;
  bool of_log = false;
};
void softmax_backward(Program& program, const SoftmaxBackward& how);
struct LogSoftmaxBackward {
  Tensor gradient, log_softmax, result;
};
void log_softmax_backward(Program& program, const LogSoftmaxBackward& how);
// Minus the mean over the batch of the label's log-probability, and its gradient.
void negative_log_likelihood(Program& program, const Scores& how);
void negative_log_likelihood_backward(Program& program, const Scores& how);

// What gradients, row-major, are multiplied by so that the norm of all together is at most that of set_clip_norm().
struct ClipGradients {
  std::vector<Tensor> gradients;
  Tensor share;  // one number
};
void clip_gradients(Program& program, const ClipGradients& how);
// The parameter by the optimiser, from its row-major gradient, times `share` where there is one.
struct Descend {
  Weight parameter;
  Tensor gradient, share;
};
void descend(Program& program, const Descend& how);
// The same by the gradient left [rows, shared] * right [shared, columns], which never lies in memory; the parameter is
// a matrix.
struct DescendProduct {
  Weight parameter;
  Tensor left, right;
};
void descend_product(Program& program, const DescendProduct& how);

}  // namespace kit
