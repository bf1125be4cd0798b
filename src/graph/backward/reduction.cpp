// SPDX-License-Identifier: Apache-2.0
// Sums, means and extremes over axes: the gradient, divided first, is repeated along them.
#include "graph/backward/rules.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

void repeat(Tape& tape, bool divide) {
  const auto& node = tape.node();
  const int input = node.tensor("self");
  if (tape.type(input) != tape.type(tape.output(0))) throw NoGradient("it changes the type");
  const Shape whole = tape.shape(input);
  const auto dims = node.find("dim") == nullptr || node.is_null("dim") ? Shape() : node.ints("dim");
  const auto over = axes_of(dims, whole.size());
  Shape reduced = whole;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (over[i]) count *= std::exchange(reduced[i], 1);
  int gradient = tape.viewed(*tape.gradient(), reduced);
  if (divide && count != 1)
    gradient = tape.call("div.Scalar", {tensor_argument("self", gradient), plain_argument("other", count)});
  if (reduced != whole)
    gradient = tape.call("expand.default", {tensor_argument("self", gradient), plain_argument("size", whole),
                                            plain_argument("implicit", false)});
  tape.give(input, gradient);
}

void mean(Tape& tape) {
  repeat(tape, true);
}
void sum(Tape& tape) {
  repeat(tape, false);
}

// Of equal extremes each gets its share, as in PyTorch.
void extreme(Tape& tape) {
  const auto& node = tape.node();
  const int input = node.tensor("self");
  const Shape whole = tape.shape(input);
  const auto over = axes_of(node.ints("dim"), whole.size());
  Shape reduced = whole, axes;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!over[i]) continue;
    reduced[i] = 1;
    axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.empty()) return tape.give(input, *tape.gradient());  // a scalar
  const int is_extreme =
      tape.call("eq.Tensor", {tape.same("self"), tensor_argument("other", tape.viewed(tape.output(0), reduced))});
  const int one_where = tape.call("where.Scalar", {tensor_argument("condition", is_extreme),
                                                   plain_argument("self", 1.0), plain_argument("other", 0.0)});
  const int count = tape.call("sum.dim_IntList", {tensor_argument("self", one_where), plain_argument("dim", axes),
                                                  plain_argument("keepdim", true), plain_argument("dtype", nullptr)});
  tape.give(input, times(tape, one_where, quotient(tape, tape.viewed(*tape.gradient(), reduced), count)));
}

}  // namespace

std::span<const BackwardRule> reduction_rules() {
  static constexpr BackwardRule all[] = {{"amax", extreme}, {"amin", extreme}, {"mean", mean}, {"sum", sum}};
  return all;
}

}  // namespace strata::graph
