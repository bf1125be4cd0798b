// SPDX-License-Identifier: Apache-2.0
// Functions of each element that are made of others.
#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

int chosen(Expansion& e, int condition, int value, int other, const std::string& name) {
  return e.call(
      "where.self",
      {tensor_argument("condition", condition), tensor_argument("self", value), tensor_argument("other", other)}, name);
}

double number_or(const Node& node, const char* name, double otherwise) {
  return node.find(name) == nullptr ? otherwise : node.number(name);
}

// log(1 + exp(beta x)) / beta, and x from a threshold of beta x on, which is the same to rounding where that is far.
void softplus(Expansion& e) {
  const auto& node = e.node();
  if (node.args.size() == 1) return;
  constexpr double far = 16;
  const double beta = number_or(node, "beta", 1), limit = number_or(node, "threshold", 20);
  const int x = node.tensor("self");
  const int scaled = beta == 1 ? x : e.with_number("mul.Scalar", x, beta, "scaled");
  int result = e.of_one("softplus.default", scaled, "bent");
  if (beta != 1) result = e.with_number("div.Scalar", result, beta, "back");
  if (limit < far) result = chosen(e, e.with_number("gt.Scalar", scaled, limit, "is_straight"), x, result, "joined");
  e.end_as(result);
}

void mish(Expansion& e) {
  const int x = e.node().tensor("self");
  const int gate = e.of_one("tanh.default", e.of_one("softplus.default", x, "softplus"), "gate");
  e.end("mul.Tensor", {tensor_argument("self", x), tensor_argument("other", gate)});
}

void log_sigmoid(Expansion& e) {
  const int negated = e.of_one("neg.default", e.node().tensor("self"), "negated");
  e.end("neg.default", {tensor_argument("self", e.of_one("softplus.default", negated, "softplus"))});
}

// scale (x above 0, else alpha (exp(x input_scale) - 1)); one that the libraries know stays in inference.
void bend(Expansion& e, double alpha, double scale, double input_scale) {
  const int x = e.node().tensor("self");
  int below = input_scale == 1 ? x : e.with_number("mul.Scalar", x, input_scale, "shrunk");
  below = e.clamped(below, nullptr, 0, "below");
  below = e.with_number("mul.Scalar", e.of_one("expm1.default", below, "bent"), alpha * scale, "scaled");
  const int above = scale == 1 ? x : e.with_number("mul.Scalar", x, scale, "above");
  e.end_as(chosen(e, e.with_number("gt.Scalar", x, 0, "is_above"), above, below, "joined"));
}
void elu(Expansion& e) {
  const auto& node = e.node();
  const double alpha = number_or(node, "alpha", 1), scale = number_or(node, "scale", 1),
               input_scale = number_or(node, "input_scale", 1);
  if (e.infers() && scale == 1 && input_scale == 1) return;
  bend(e, alpha, scale, input_scale);
}
void selu(Expansion& e) {
  bend(e, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}
void celu(Expansion& e) {
  const double alpha = number_or(e.node(), "alpha", 1);
  if (alpha != 0) bend(e, alpha, 1, 1 / alpha);
}

void square(Expansion& e) {
  const int x = e.node().tensor("self");
  e.end("mul.Tensor", {tensor_argument("self", x), tensor_argument("other", x)});
}

// x where it is above a number, else another number.
void threshold(Expansion& e) {
  const auto& node = e.node();
  const int above = e.with_number("gt.Scalar", node.tensor("self"), node.find("threshold")->plain, "is_above");
  e.end("where.ScalarOther", {tensor_argument("condition", above), tensor_argument("self", node.tensor("self")),
                              plain_argument("other", node.number("value"))});
}

// self + weight (end - self)
void lerp(Expansion& e) {
  const auto& node = e.node();
  const int self = node.tensor("self");
  const int way = e.of_two("sub.Tensor", node.tensor("end"), self, "way");
  const int part = node.is_tensor("weight") ? e.of_two("mul.Tensor", way, node.tensor("weight"), "part")
                                            : e.with_number("mul.Scalar", way, node.find("weight")->plain, "part");
  e.end("add.Tensor", {tensor_argument("self", self), tensor_argument("other", part), plain_argument("alpha", 1)});
}

}  // namespace

std::span<const ExpansionRule> function_expansions() {
  static constexpr ExpansionRule all[] = {
      {"celu", celu}, {"elu", elu},           {"lerp", lerp},     {"log_sigmoid", log_sigmoid}, {"mish", mish},
      {"selu", selu}, {"softplus", softplus}, {"square", square}, {"threshold", threshold}};
  return all;
}

}  // namespace strata::graph
