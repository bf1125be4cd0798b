// SPDX-License-Identifier: Apache-2.0
// From a captured network in train mode to a training step: the loss and the gradient of every parameter that is
// trained, as further nodes of the same graph (ATen's backward operations where it has one). Reverse-mode
// differentiation by strata's own rules, one file a family of operations (rules.hpp). The optimiser is not part of it.
#pragma once

#include <cstddef>
#include <vector>

#include "common/result.hpp"
#include "graph/graph.hpp"

namespace strata::graph {

// Mean over the batch: cross_entropy of logits, nll of log-probabilities, of the network's first output, [N, C]. Or
// that output is the loss, a scalar.
enum class Loss : std::uint8_t { cross_entropy, nll, output };
// Error: another name.
Result<Loss> loss_named(std::string_view name);
// Of a captured network: one whose first output is one number gives its loss, whatever that is called.
Result<Loss> loss_of(const Graph& network, std::string_view name);

// `graph` has one input more, `labels` (int64 [N]; not where the network's output is its loss), and the outputs `loss`
// and `grad:<parameter>`; its updates are the network's. Nodes [0, forward_nodes) are the network, those up to
// `loss_nodes` the loss, the rest the backward pass.
struct TrainingGraph {
  Graph graph;
  std::size_t forward_nodes = 0, loss_nodes = 0;
  int labels = -1, loss = -1;  // values; -1: there are no labels
  double clip_norm = 0;        // above 0: gradients are clipped before any parameter changes, as core::Optimiser has it
  std::vector<Named> gradients;  // of parameters by their names, in the graph's order; one without influence has none
};

// Nothing is computed for what needs no gradient: frozen parameters, inputs, and what comes before the first parameter.
// Errors: an operation or a case of one without a rule, with its place; outputs that are no scores; a graph of mode
// infer.
Result<TrainingGraph> differentiate(const Graph& network, Loss loss);

// The forward pass as it is after training: batch norms with their running statistics, no dropout, no updates.
Graph evaluation_of(const Graph& network);

}  // namespace strata::graph
