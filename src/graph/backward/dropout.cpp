// SPDX-License-Identifier: Apache-2.0
// Dropout: native_dropout keeps its mask, by which the gradient is multiplied again.
#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

void keep_mask(Tape& tape, Node& node) {
  if (node.operation() != "dropout" || !node.flag("train")) return;
  const int input = node.tensor("input");
  node.op = "aten.native_dropout.default";
  node.outputs.push_back(tape.add_value(node.name + "_mask", {Type::boolean, tape.shape(input)}));
}

void dropout(Tape& tape) {
  const auto& node = tape.node();
  if (node.operation() == "dropout") return tape.give("input", *tape.gradient());  // switched off
  const double p = node.number("p");
  tape.give("input",
            tape.call("native_dropout_backward.default",
                      {tensor_argument("grad_output", *tape.gradient()), tensor_argument("mask", tape.output(1)),
                       plain_argument("scale", p == 1 ? 0.0 : 1 / (1 - p))}));
}

}  // namespace

std::span<const BackwardRule> dropout_rules() {
  static constexpr BackwardRule all[] = {{"dropout", dropout, keep_mask}, {"native_dropout", dropout}};
  return all;
}

}  // namespace strata::graph
