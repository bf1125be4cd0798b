// SPDX-License-Identifier: Apache-2.0
// Tensors joined along an axis: each gets its slice of the gradient.
#include "graph/backward/rules.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

void cat(Tape& tape) {
  const int gradient = *tape.gradient();
  const auto axis = axis_of(tape.node().integer("dim"), tape.shape(gradient).size());
  std::int64_t begin = 0;
  for (const int part : tape.node().tensors("tensors")) {
    const auto extent = tape.shape(part).at(axis);
    if (tape.wants(part))
      tape.give(part, tape.call("slice.Tensor",
                                {tensor_argument("self", gradient), tape.same("dim"), plain_argument("start", begin),
                                 plain_argument("end", begin + extent), plain_argument("step", 1)}));
    begin += extent;
  }
}

void stack(Tape& tape) {
  std::int64_t index = 0;
  for (const int part : tape.node().tensors("tensors")) {
    if (tape.wants(part))
      tape.give(part, tape.call("select.int", {tensor_argument("self", *tape.gradient()), tape.same("dim"),
                                               plain_argument("index", index)}));
    ++index;
  }
}

}  // namespace

std::span<const BackwardRule> join_rules() {
  static constexpr BackwardRule all[] = {{"cat", cat}, {"stack", stack}};
  return all;
}

}  // namespace strata::graph
