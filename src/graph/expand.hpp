// SPDX-License-Identifier: Apache-2.0
// Operations that are others, written as these, so that a level, a program and a gradient know them at once:
//   addmm            a product of matrices and a sum; in inference with a weight, a linear layer
//   addcmul          products and a sum
//   clamp            of whole numbers, its bounds one by one
//   attention        a mask of truths becomes one that is added; grouped keys and values are repeated; in training
//                    causal attention, or such as drops out, is the products, softmax and dropout of which it consists
//   losses           the calculations, log-softmax and lookups of which they consist
//   lstm, gru, rnn   their layers in each direction (recurrent.hpp), joined; a cell is a layer of one step
//   group_norm, ...  norms of groups and instances are layer norms of rows, scale and shift by channel; of weights
//   linear           in training a product, where the weight is computed in every step
//   max, min, ...    extremes, or lookups of their places; argsort a sort
//   pad, ...         edges of what the tensor holds are slices, joined
//   pixel_shuffle    views and a permutation
//   poolings         of lines and volumes in training, and to a wanted size, those of images
//   prelu, mish, ... activations, products, sums, choices; var, rms_norm: means, products, sums
//   flip, unfold     slices, joined
//   scatter, ...     writes to computed places in one form of each
//   upsample_...     of lines and volumes, one or two of images; layers and poolings without a batch: a batch of one
//   reshape_as, ...  a view of a shape that is known
#pragma once

#include "common/result.hpp"
#include "graph/graph.hpp"

namespace strata::graph {

// The graph with these in place; what it computes, and the names of its inputs, weights and outputs, stay. An operation
// of a form that is not known stays as it is. Errors: a damaged argument.
Result<Graph> expanded(Graph graph);

}  // namespace strata::graph
