// SPDX-License-Identifier: Apache-2.0
// Pooling of images. A maximum keeps where it was found.
#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

void keep_indices(Tape& tape, Node& node) {
  if (node.operation() != "max_pool2d") return;
  node.op = "aten.max_pool2d_with_indices.default";
  node.outputs.push_back(tape.add_value(node.name + "_indices", {Type::int64, tape.shape(node.outputs.front())}));
}

void max_pool(Tape& tape) {
  if (!tape.gradient()) throw NoGradient("a gradient of its indices");
  tape.give("self",
            tape.call("max_pool2d_with_indices_backward.default",
                      {tensor_argument("grad_output", *tape.gradient()), tape.same("self"), tape.same("kernel_size"),
                       tape.same("stride"), tape.same("padding"), tape.same("dilation"), tape.same("ceil_mode"),
                       tensor_argument("indices", tape.output(1))}));
}

void avg_pool(Tape& tape) {
  tape.give("self", tape.call("avg_pool2d_backward.default",
                              {tensor_argument("grad_output", *tape.gradient()), tape.same("self"),
                               tape.same("kernel_size"), tape.same("stride"), tape.same("padding"),
                               tape.same("ceil_mode"), tape.same("count_include_pad"), tape.same("divisor_override")}));
}

void adaptive_avg_pool(Tape& tape) {
  tape.give("self", tape.call("_adaptive_avg_pool2d_backward.default",
                              {tensor_argument("grad_output", *tape.gradient()), tape.same("self")}));
}

}  // namespace

std::span<const BackwardRule> pooling_rules() {
  static constexpr BackwardRule all[] = {{"adaptive_avg_pool2d", adaptive_avg_pool},
                                         {"avg_pool2d", avg_pool},
                                         {"max_pool2d", max_pool, keep_indices},
                                         {"max_pool2d_with_indices", max_pool}};
  return all;
}

}  // namespace strata::graph
