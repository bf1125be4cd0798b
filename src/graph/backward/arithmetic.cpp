// SPDX-License-Identifier: Apache-2.0
// Sums, differences, products and quotients with broadcasting: the gradient of a broadcast operand is summed over the
// axes along which it was repeated.
#include "graph/backward/rules.hpp"

namespace strata::graph {

int times(Tape& tape, int value, int other) {
  return tape.call("mul.Tensor", {tensor_argument("self", value), tensor_argument("other", other)});
}

int times_number(Tape& tape, int value, const nlohmann::json& number) {
  return tape.call("mul.Scalar", {tensor_argument("self", value), plain_argument("other", number)});
}

int quotient(Tape& tape, int value, int other) {
  return tape.call("div.Tensor", {tensor_argument("self", value), tensor_argument("other", other)});
}

namespace {

void give_summed(Tape& tape, std::string_view argument, int gradient) {
  const int value = tape.node().tensor(argument);
  if (tape.type(value) != tape.type(gradient)) throw NoGradient("it joins tensors of different types");
  tape.give(value, tape.summed_to(gradient, tape.shape(value)));
}

int negated(Tape& tape, int value) {
  return tape.call("neg.default", {tensor_argument("self", value)});
}

double alpha_of(const Tape& tape) {
  return tape.node().find("alpha") == nullptr ? 1 : tape.node().number("alpha");
}

// self + factor other
void give_terms(Tape& tape, double factor) {
  const int gradient = *tape.gradient();
  if (tape.wants("self")) give_summed(tape, "self", gradient);
  if (!tape.wants("other")) return;
  give_summed(tape, "other",
              factor == 1    ? gradient
              : factor == -1 ? negated(tape, gradient)
                             : times_number(tape, gradient, factor));
}

void add(Tape& tape) {
  give_terms(tape, alpha_of(tape));
}
void sub(Tape& tape) {
  give_terms(tape, -alpha_of(tape));
}
void neg(Tape& tape) {
  tape.give("self", negated(tape, *tape.gradient()));
}

// other - alpha self, of numbers alone
void rsub(Tape& tape) {
  if (tape.node().is_tensor("other")) throw NoGradient("rsub of two tensors");
  tape.give("self", times_number(tape, *tape.gradient(), -alpha_of(tape)));
}

void mul(Tape& tape) {
  const auto& node = tape.node();
  const int gradient = *tape.gradient();
  if (!node.is_tensor("other")) return tape.give("self", times_number(tape, gradient, node.find("other")->plain));
  const int self = node.tensor("self"), other = node.tensor("other");
  if (tape.wants(self)) give_summed(tape, "self", times(tape, gradient, other));
  if (tape.wants(other)) give_summed(tape, "other", times(tape, gradient, self));
}

void div(Tape& tape) {
  const auto& node = tape.node();
  const int gradient = *tape.gradient();
  if (node.find("rounding_mode") != nullptr && !node.is_null("rounding_mode")) throw NoGradient("it rounds");
  if (!node.is_tensor("other"))
    return tape.give("self", tape.call("div.Scalar", {tensor_argument("self", gradient), tape.same("other")}));
  const int other = node.tensor("other");
  const int by_other = quotient(tape, gradient, other);
  if (tape.wants("self")) give_summed(tape, "self", by_other);
  // d(a / b) = - (a / b) / b db
  if (tape.wants(other)) give_summed(tape, "other", negated(tape, times(tape, by_other, tape.output(0))));
}

// Each place's gradient goes to where its value came from; 0 to the other.
void where(Tape& tape) {
  const int gradient = *tape.gradient();
  if (tape.wants("self"))
    give_summed(tape, "self",
                tape.call("where.ScalarOther",
                          {tape.same("condition"), tensor_argument("self", gradient), plain_argument("other", 0.0)}));
  if (tape.wants("other"))
    give_summed(tape, "other",
                tape.call("where.ScalarSelf",
                          {tape.same("condition"), plain_argument("self", 0.0), tensor_argument("other", gradient)}));
}

// To the operand that was taken; half to each where they are equal, as in PyTorch.
void choice(Tape& tape, const char* is_taken) {
  const auto compared = [&](const std::string& how, const char* left, const char* right) {
    return tape.call(how + ".Tensor", {tape.same(left, "self"), tape.same(right, "other")});
  };
  const int halves = times_number(tape, *tape.gradient(), 0.5);
  const int equal = compared("eq", "self", "other");
  for (const auto& [own, other] : {std::pair("self", "other"), std::pair("other", "self")}) {
    if (!tape.wants(own)) continue;
    const int whole =
        tape.call("where.ScalarOther", {tensor_argument("condition", compared(is_taken, own, other)),
                                        tensor_argument("self", *tape.gradient()), plain_argument("other", 0.0)});
    give_summed(tape, own,
                tape.call("where.self", {tensor_argument("condition", equal), tensor_argument("self", halves),
                                         tensor_argument("other", whole)}));
  }
}
void maximum(Tape& tape) {
  choice(tape, "gt");
}
void minimum(Tape& tape) {
  choice(tape, "lt");
}

void masked_fill(Tape& tape) {
  if (tape.wants("value")) throw NoGradient("what is filled in is trained");
  give_summed(tape, "self",
              tape.call("masked_fill.Scalar",
                        {tensor_argument("self", *tape.gradient()), tape.same("mask"), plain_argument("value", 0)}));
}

}  // namespace

std::span<const BackwardRule> arithmetic_rules() {
  static constexpr BackwardRule all[] = {{"add", add},         {"div", div},         {"masked_fill", masked_fill},
                                         {"maximum", maximum}, {"minimum", minimum}, {"mul", mul},
                                         {"neg", neg},         {"rsub", rsub},       {"sub", sub},
                                         {"where", where}};
  return all;
}

}  // namespace strata::graph
