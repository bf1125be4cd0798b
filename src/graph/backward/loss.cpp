// SPDX-License-Identifier: Apache-2.0
// The negative log-likelihood, which differentiate() appends to the network.
#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

void nll_loss(Tape& tape) {
  tape.give("self", tape.call("nll_loss_backward.default",
                              {tensor_argument("grad_output", *tape.gradient()), tape.same("self"), tape.same("target"),
                               tape.same("weight"), tape.same("reduction"), tape.same("ignore_index"),
                               tensor_argument("total_weight", tape.output(1))}));
}

}  // namespace

std::span<const BackwardRule> loss_rules() {
  static constexpr BackwardRule all[] = {{"nll_loss_forward", nll_loss}};
  return all;
}

}  // namespace strata::graph
