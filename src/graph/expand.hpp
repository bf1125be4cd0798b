// SPDX-License-Identifier: Apache-2.0
// Operations that are others, written as these, so that a level, a program and a gradient know them at once:
//   addmm            a product of matrices and a sum; in inference with a weight, a linear layer
//   addcmul          products and a sum
//   clamp            of whole numbers, its bounds one by one
//   attention        a mask of truths becomes one that is added; grouped keys and values are repeated; in training
//                    causal attention, or such as drops out, is the products, softmax and dropout of which it consists
//   losses           the calculations, log-softmax and lookups of which they consist (expand_losses.cpp)
//   lstm, gru, rnn   their layers in each direction (recurrent.hpp), joined; a cell is a layer of one step
//   group_norm       a layer norm of each group, scale and shift by channel
//   reshape_as, ...  a view of a shape that is known
#pragma once

#include "common/result.hpp"
#include "graph/graph.hpp"

namespace strata::graph {

// The graph with these in place; what it computes, and the names of its inputs, weights and outputs, stay. An operation
// of a form that is not known stays as it is. Errors: a damaged argument.
Result<Graph> expanded(Graph graph);

}  // namespace strata::graph
