// SPDX-License-Identifier: Apache-2.0
// Linear layers and matrix products: dX = G W, dW = G^T X, db = the sum of G over rows. What was broadcast is summed.
#include "graph/backward/rules.hpp"

namespace strata::graph {

int transposed(Tape& tape, int value) {
  if (tape.shape(value).size() == 2) return tape.call("t.default", {tensor_argument("self", value)});
  return tape.call("transpose.int",
                   {tensor_argument("self", value), plain_argument("dim0", -2), plain_argument("dim1", -1)});
}

int product(Tape& tape, int a, int b) {
  if (tape.shape(a).size() == 2 && tape.shape(b).size() == 2)
    return tape.call("mm.default", {tensor_argument("self", a), tensor_argument("mat2", b)});
  return tape.call("matmul.default", {tensor_argument("self", a), tensor_argument("other", b)});
}

namespace {

// As rows of its last axis.
int rows(Tape& tape, int value, std::int64_t width) {
  const auto all = tape.graph().value(value).elements();
  return tape.viewed(value, {width == 0 ? 0 : all / width, width});
}

void linear(Tape& tape) {
  const auto& node = tape.node();
  const int input = node.tensor("input"), weight = node.tensor("weight");
  const auto extents = tape.shape(weight);
  const int gradient = rows(tape, *tape.gradient(), extents[0]);
  if (tape.wants(input)) tape.give(input, tape.viewed(product(tape, gradient, weight), tape.shape(input)));
  if (tape.wants(weight)) tape.give(weight, product(tape, transposed(tape, gradient), rows(tape, input, extents[1])));
  if (tape.wants("bias")) tape.give("bias", tape.summed_to(gradient, {extents[0]}));
}

void matrix_product(Tape& tape) {
  const auto& node = tape.node();
  const int a = node.tensor("self"), b = node.tensor(node.find("mat2") != nullptr ? "mat2" : "other");
  if (tape.shape(a).size() < 2 || tape.shape(b).size() < 2) throw NoGradient("a product with a vector");
  const int gradient = *tape.gradient();
  const auto give = [&](int to, int part) { tape.give(to, tape.summed_to(part, tape.shape(to))); };
  if (tape.wants(a)) give(a, product(tape, gradient, transposed(tape, b)));
  if (tape.wants(b)) give(b, product(tape, transposed(tape, a), gradient));
}

}  // namespace

std::span<const BackwardRule> linear_rules() {
  static constexpr BackwardRule all[] = {
      {"bmm", matrix_product}, {"linear", linear}, {"matmul", matrix_product}, {"mm", matrix_product}};
  return all;
}

}  // namespace strata::graph
