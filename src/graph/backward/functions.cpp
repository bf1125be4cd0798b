// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor whose derivative is arithmetic on the operand or the result, clamps, powers, and the
// Euclidean norm.
#include <cmath>
#include <limits>

#include "graph/backward/rules.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// d exp(x) = exp(x) dx
void exp(Tape& tape) {
  tape.give("self", times(tape, *tape.gradient(), tape.output(0)));
}

// d sqrt(x) = dx / (2 sqrt(x))
void sqrt(Tape& tape) {
  tape.give("self", quotient(tape, times_number(tape, *tape.gradient(), 0.5), tape.output(0)));
}

// d (1 / sqrt(x)) = - y y y / 2 dx, y the result
void rsqrt(Tape& tape) {
  const int y = tape.output(0);
  tape.give("self", times(tape, times_number(tape, *tape.gradient(), -0.5), times(tape, y, times(tape, y, y))));
}

// d log(x) = dx / x
void log(Tape& tape) {
  tape.give("self", quotient(tape, *tape.gradient(), tape.node().tensor("self")));
}
// d log(1 + x) = dx / (1 + x)
void log1p(Tape& tape) {
  const int above =
      tape.call("add.Scalar", {tape.same("self"), plain_argument("other", 1), plain_argument("alpha", 1)});
  tape.give("self", quotient(tape, *tape.gradient(), above));
}
// d (exp(x) - 1) = (y + 1) dx, y the result
void expm1(Tape& tape) {
  const int grown = tape.call(
      "add.Scalar", {tensor_argument("self", tape.output(0)), plain_argument("other", 1), plain_argument("alpha", 1)});
  tape.give("self", times(tape, *tape.gradient(), grown));
}
// d |x| = sign(x) dx
void abs(Tape& tape) {
  tape.give("self", times(tape, *tape.gradient(), tape.call("sign.default", {tape.same("self")})));
}
// d log(1 + exp(x)) = sigmoid(x) dx
void softplus(Tape& tape) {
  if (tape.node().args.size() > 1) throw NoGradient("a softplus with a threshold that is seen");
  tape.give("self", times(tape, *tape.gradient(), tape.call("sigmoid.default", {tape.same("self")})));
}
void sin(Tape& tape) {
  tape.give("self", times(tape, *tape.gradient(), tape.call("cos.default", {tape.same("self")})));
}
void cos(Tape& tape) {
  tape.give("self",
            times(tape, times_number(tape, *tape.gradient(), -1), tape.call("sin.default", {tape.same("self")})));
}

// d (1 / x) = - y y dx, y the result
void reciprocal(Tape& tape) {
  const int y = tape.output(0);
  tape.give("self", times(tape, times_number(tape, *tape.gradient(), -1), times(tape, y, y)));
}

// d x^n = n x^(n - 1) dx, of a number n
void power(Tape& tape) {
  const auto& node = tape.node();
  if (node.is_tensor("exponent") || !node.is_tensor("self")) throw NoGradient("a power that is a tensor");
  const int x = node.tensor("self");
  const double n = node.number("exponent");
  if (tape.type(x) != Type::float32) throw NoGradient("a power of what is not float32");
  if (n == 0) return tape.give(x, times_number(tape, *tape.gradient(), 0.0));
  int slope = x;
  if (n != 2 && n != 1) slope = tape.call("pow.Tensor_Scalar", {tape.same("self"), plain_argument("exponent", n - 1)});
  const int scaled = n == 1 ? *tape.gradient() : times_number(tape, *tape.gradient(), n);
  tape.give(x, n == 1 ? scaled : times(tape, scaled, slope));
}

// PyTorch's clamp hands the gradient through at its bounds, hardtanh does not: its bounds are the next numbers.
void clamp(Tape& tape) {
  const auto& node = tape.node();
  if (tape.type(node.tensor("self")) != Type::float32) throw NoGradient("a clamp of what is not float32");
  constexpr float infinite = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  const auto bound = [&](const char* name, float without, float towards) {
    const auto* argument = node.find(name);
    if (argument == nullptr || node.is_null(name)) return static_cast<double>(without);
    if (argument->kind != Argument::Kind::plain) throw NoGradient("a clamp to tensors");
    return static_cast<double>(std::nextafter(static_cast<float>(node.number(name)), towards));
  };
  const double low = bound("min", -most, -infinite), high = bound("max", most, infinite);
  tape.give("self",
            tape.call("hardtanh_backward.default", {tensor_argument("grad_output", *tape.gradient()), tape.same("self"),
                                                    plain_argument("min_val", low), plain_argument("max_val", high)}));
}

// d |x| = x / |x| dx; 0 where x is, as in PyTorch.
void norm(Tape& tape) {
  const auto& node = tape.node();
  const int input = node.tensor("self");
  if (node.find("ord") != nullptr && !node.is_null("ord") && node.number("ord") != 2)
    throw NoGradient("a norm that is not the Euclidean one");
  if (tape.type(input) != tape.type(tape.output(0))) throw NoGradient("it changes the type");
  const Shape whole = tape.shape(input);
  const auto over =
      axes_of(node.find("dim") == nullptr || node.is_null("dim") ? Shape() : node.ints("dim"), whole.size());
  Shape reduced = whole;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (over[i]) reduced[i] = 1;
  constexpr double least = 1e-30;
  const int length = tape.call("clamp.default", {tensor_argument("self", tape.viewed(tape.output(0), reduced)),
                                                 plain_argument("min", least), plain_argument("max", nullptr)});
  tape.give(input, times(tape, input, quotient(tape, tape.viewed(*tape.gradient(), reduced), length)));
}

}  // namespace

std::span<const BackwardRule> function_rules() {
  static constexpr BackwardRule all[] = {
      {"abs", abs},     {"clamp", clamp}, {"clamp_max", clamp},   {"clamp_min", clamp},
      {"cos", cos},     {"exp", exp},     {"expm1", expm1},       {"linalg_vector_norm", norm},
      {"log", log},     {"log1p", log1p}, {"pow", power},         {"reciprocal", reciprocal},
      {"rsqrt", rsqrt}, {"sin", sin},     {"softplus", softplus}, {"sqrt", sqrt}};
  return all;
}

}  // namespace strata::graph
