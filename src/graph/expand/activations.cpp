// SPDX-License-Identifier: Apache-2.0
// Activations with an operand, or of two halves.
#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// relu(x) + w min(x, 0), w of all channels or of each.
void prelu(Expansion& e) {
  const auto& node = e.node();
  const int x = node.tensor("self"), weight = node.tensor("weight");
  const Shape of_weight = e.shape(weight);
  Shape by_channel(std::max<std::size_t>(e.shape(x).size(), 1), 1);
  if (elements(of_weight) != 1) by_channel.at(1) = elements(of_weight);
  const int above = e.call("relu.default", {tensor_argument("self", x)}, "above");
  const int below = e.call(
      "clamp.default", {tensor_argument("self", x), plain_argument("min", nullptr), plain_argument("max", 0)}, "below");
  const int scaled = e.call(
      "mul.Tensor", {tensor_argument("self", below), tensor_argument("other", e.viewed(weight, by_channel, "weight"))},
      "scaled");
  e.end("add.Tensor", {tensor_argument("self", above), tensor_argument("other", scaled), plain_argument("alpha", 1)});
}

// The first half of an axis times the sigmoid of the second.
void glu(Expansion& e) {
  const int x = e.node().tensor("self");
  const Shape shape = e.shape(x);
  if (shape.empty()) return;
  const auto axis = e.axis("dim", shape.size());
  const auto half = shape[axis] / 2;
  const int gate =
      e.call("sigmoid.default", {tensor_argument("self", e.sliced(x, axis, half, 2 * half, "second"))}, "gate");
  e.end("mul.Tensor", {tensor_argument("self", e.sliced(x, axis, 0, half, "first")), tensor_argument("other", gate)});
}

}  // namespace

std::span<const ExpansionRule> activation_expansions() {
  static constexpr ExpansionRule all[] = {{"glu", glu}, {"prelu", prelu}, {"_prelu_kernel", prelu}};
  return all;
}

}  // namespace strata::graph
