// SPDX-License-Identifier: Apache-2.0
// An einsum that is one product of matrices: the gradient of an operand is the product of the result's gradient and the
// other operand, summed over what that operand lacks.
#include "graph/einsum.hpp"

#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

void einsum(Tape& tape) {
  const auto tensors = tape.node().tensors("tensors");
  const auto how = matrix_einsum(tape.node().text("equation"));
  if (!how || tensors.size() != 2)
    throw NoGradient("the equation '" + tape.node().text("equation") +
                     "', which is no product of two tensors' matrices");
  const auto add_gradient = [&](int operand, const std::string& labels, int left, const std::string& of_left, int right,
                                const std::string& of_right) {
    if (!tape.wants(operand)) return;
    const int gradient =
        tape.call("einsum.default", {plain_argument("equation", of_left + "," + of_right + "->" + labels),
                                     tensors_argument("tensors", {left, right}), plain_argument("path", nullptr)});
    tape.give(operand, tape.summed_to(gradient, tape.shape(operand)));
  };
  const int gradient = *tape.gradient();
  add_gradient(tensors[0], how->left, gradient, how->result, tensors[1], how->right);
  add_gradient(tensors[1], how->right, tensors[0], how->left, gradient, how->result);
}

}  // namespace

std::span<const BackwardRule> einsum_rules() {
  static constexpr BackwardRule all[] = {{"einsum", einsum}};
  return all;
}

}  // namespace strata::graph
