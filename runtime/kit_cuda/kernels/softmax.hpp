// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along a dimension, sums in float64; the likelihood of labels; their gradients. Log-softmax
// and the likelihood behind it are the cross entropy.
#pragma once

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

void softmax(Stream stream, Source x, int axis, bool logarithm, Target y);
// `y`: what softmax gave
void softmax_backward(Stream stream, Source gradient, Source y, int axis, bool logarithm, Target to);

// Minus the mean over the batch of the label's score, of scores [batch, classes]; `count` (may be null) gets the number
// of rows. A label that is no class leaves 1 + its row in `fault` on the device.
void likelihood(Stream stream, Source scores, const std::int64_t* labels, float* loss, float* count, Index* fault);
// `gradient`: that of the loss; null: 1
void likelihood_backward(Stream stream, const float* gradient, const std::int64_t* labels, Target to);

}  // namespace kit_cuda
