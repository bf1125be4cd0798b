// SPDX-License-Identifier: Apache-2.0
// Views of the same elements, and parts of them: the gradient is brought back into the input's form.
#include "graph/backward/rules.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

void reshape(Tape& tape) {
  tape.give("self", tape.viewed(*tape.gradient(), tape.shape(tape.node().tensor("self"))));
}

void permute(Tape& tape) {
  const auto dims = tape.node().ints("dims");
  Shape back(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) back[axis_of(dims[i], dims.size())] = static_cast<std::int64_t>(i);
  tape.give("self",
            tape.call("permute.default", {tensor_argument("self", *tape.gradient()), plain_argument("dims", back)}));
}

void transpose(Tape& tape) {
  tape.give("self", tape.call("transpose.int",
                              {tensor_argument("self", *tape.gradient()), tape.same("dim0"), tape.same("dim1")}));
}

void matrix_transpose(Tape& tape) {
  tape.give("self", tape.call("t.default", {tensor_argument("self", *tape.gradient())}));
}

void expand(Tape& tape) {
  tape.give("self", tape.summed_to(*tape.gradient(), tape.shape(tape.node().tensor("self"))));
}

void same(Tape& tape) {
  tape.give("self", *tape.gradient());
}

void slice(Tape& tape) {
  const auto whole = tape.shape(tape.node().tensor("self"));
  const auto dim = tape.node().integer("dim");
  const auto extent = whole.at(axis_of(dim, whole.size()));
  tape.give("self",
            tape.call("slice_backward.default",
                      {tensor_argument("grad_output", *tape.gradient()), plain_argument("input_sizes", whole),
                       tape.same("dim"), plain_argument("start", tape.node().maybe_integer("start").value_or(0)),
                       plain_argument("end", tape.node().maybe_integer("end").value_or(extent)), tape.same("step")}));
}

void select(Tape& tape) {
  tape.give("self",
            tape.call("select_backward.default", {tensor_argument("grad_output", *tape.gradient()),
                                                  plain_argument("input_sizes", tape.shape(tape.node().tensor("self"))),
                                                  tape.same("dim"), tape.same("index")}));
}

// Gradients of all parts; zeros for one that nothing depends on.
std::vector<int> of_all_parts(Tape& tape) {
  std::vector<int> parts;
  for (std::size_t i = 0; i < tape.node().outputs.size(); ++i) {
    const auto gradient = tape.gradient(i);
    parts.push_back(gradient ? *gradient
                             : tape.call("zeros_like.default",
                                         {tensor_argument("self", tape.output(i)), plain_argument("dtype", nullptr)}));
  }
  return parts;
}

void joined(Tape& tape) {
  auto parts = of_all_parts(tape);
  const auto gradient = parts.size() == 1
                            ? parts.front()
                            : tape.call("cat.default", {tensors_argument("tensors", parts), tape.same("dim")});
  tape.give("self", gradient);
}

// Its result wants no gradient (backward.cpp).
void stops(Tape&) {}

void unbind(Tape& tape) {
  tape.give("self", tape.call("stack.default", {tensors_argument("tensors", of_all_parts(tape)), tape.same("dim")}));
}

}  // namespace

std::span<const BackwardRule> view_rules() {
  static constexpr BackwardRule all[] = {{"chunk", joined},
                                         {"clone", same},
                                         {"contiguous", same},
                                         {"detach", stops},
                                         {"expand", expand},
                                         {"expand_as", expand},
                                         {"flatten", reshape},
                                         {"permute", permute},
                                         {"reshape", reshape},
                                         {"select", select},
                                         {"slice", slice},
                                         {"split", joined},
                                         {"split_with_sizes", joined},
                                         {"squeeze", reshape},
                                         {"t", matrix_transpose},
                                         {"transpose", transpose},
                                         {"unbind", unbind},
                                         {"unflatten", reshape},
                                         {"unsqueeze", reshape},
                                         {"view", reshape}};
  return all;
}

}  // namespace strata::graph
