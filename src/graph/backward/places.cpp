// SPDX-License-Identifier: Apache-2.0
// Elements read from, or written to, computed places: each place of the gradient goes back to where its value came
// from; what was read more than once adds up, what was overwritten has no gradient.
#include "graph/backward/rules.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

int zeros_like(Tape& tape, int value) {
  return tape.call("zeros_like.default", {tensor_argument("self", value), plain_argument("dtype", nullptr)});
}

// Zeros, shaped as `like`, with the gradient added at places along the node's axis.
int scattered(Tape& tape, int like, int places) {
  return tape.call("scatter_add.default", {tensor_argument("self", zeros_like(tape, like)), tape.same("dim"),
                                           tensor_argument("index", places), tensor_argument("src", *tape.gradient())});
}

int put(Tape& tape, int self, const std::vector<int>& lists, int values, bool adds) {
  return tape.call("index_put.default", {tensor_argument("self", self), tensors_argument("indices", lists),
                                         tensor_argument("values", values), plain_argument("accumulate", adds)});
}

int gathered(Tape& tape, int value) {
  return tape.call("gather.default", {tensor_argument("self", value), tape.same("dim"), tape.same("index"),
                                      plain_argument("sparse_grad", false)});
}

void gather(Tape& tape) {
  const auto& node = tape.node();
  tape.give("self", scattered(tape, node.tensor("self"), node.tensor("index")));
}

void index_select(Tape& tape) {
  const int self = tape.node().tensor("self");
  std::vector<int> lists(axis_of(tape.node().integer("dim"), tape.shape(self).size()), -1);
  lists.push_back(tape.node().tensor("index"));
  tape.give(self, put(tape, zeros_like(tape, self), lists, *tape.gradient(), true));
}

// Of a sort's or a topk's values.
void in_order(Tape& tape) {
  if (!tape.gradient()) throw NoGradient("a gradient of its places");
  tape.give("self", scattered(tape, tape.node().tensor("self"), tape.output(1)));
}

void give_source(Tape& tape) {
  const auto& node = tape.node();
  if (!tape.wants("src")) return;
  if (tape.shape(node.tensor("src")) != tape.shape(node.tensor("index")))
    throw NoGradient("it writes a part of its source");
  tape.give("src", gathered(tape, *tape.gradient()));
}

void scatter_add(Tape& tape) {
  tape.give("self", *tape.gradient());
  give_source(tape);
}

void scatter(Tape& tape) {
  give_source(tape);
  if (!tape.wants("self")) return;
  tape.give("self",
            tape.call("scatter.src", {tensor_argument("self", *tape.gradient()), tape.same("dim"), tape.same("index"),
                                      tensor_argument("src", zeros_like(tape, tape.node().tensor("src")))}));
}

void index_put(Tape& tape) {
  const auto& node = tape.node();
  const int gradient = *tape.gradient(), values = node.tensor("values");
  const auto& lists = node.tensors("indices");
  if (tape.wants(values))
    tape.give(values, tape.call("index.Tensor", {tensor_argument("self", gradient), tape.same("indices")}));
  if (!tape.wants("self")) return;
  tape.give("self", node.flag("accumulate") ? gradient : put(tape, gradient, lists, zeros_like(tape, values), false));
}

}  // namespace

void give_picked(Tape& tape) {
  const int self = tape.node().tensor("self");
  tape.give(self, put(tape, zeros_like(tape, self), tape.node().tensors("indices"), *tape.gradient(), true));
}

std::span<const BackwardRule> place_rules() {
  static constexpr BackwardRule all[] = {
      {"gather", gather},   {"index_put", index_put},     {"index_select", index_select},
      {"scatter", scatter}, {"scatter_add", scatter_add}, {"sort", in_order},
      {"topk", in_order}};
  return all;
}

}  // namespace strata::graph
