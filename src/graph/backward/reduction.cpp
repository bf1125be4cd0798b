// SPDX-License-Identifier: Apache-2.0
// Sums and means over axes: the gradient, divided first, is repeated along them.
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

}  // namespace

std::span<const BackwardRule> reduction_rules() {
  static constexpr BackwardRule all[] = {{"mean", mean}, {"sum", sum}};
  return all;
}

}  // namespace strata::graph
