// SPDX-License-Identifier: Apache-2.0
// Operations on each element, and softmax.
#include <fmt/format.h>

#include "compiler/op_traits.hpp"
#include "generate/operations.hpp"

namespace strata::generate {
namespace {

void applied(Emitter& e, const std::string& function) {
  e.call("apply",
         {{"source", e.tensor(e.self())}, {"function", function}, {"result", e.result()}, {"then", e.posts()}});
}

void activation(Emitter& e) {
  compiler::Step alone = e.step();
  alone.posts.clear();
  const auto post = compiler::as_activation(alone);
  if (!post) throw Unsupported("a case of it that no function of oneDNN is");
  applied(e, function_of(*post));
}

void exponential(Emitter& e) {
  applied(e, "exponential()");
}
void square_root(Emitter& e) {
  applied(e, "square_root()");
}
void absolute(Emitter& e) {
  applied(e, "absolute()");
}

// alpha x + beta.
void along_line(Emitter& e, double alpha, double beta) {
  applied(e, fmt::format("line({}, {})", float_literal(alpha), float_literal(beta)));
}

double alpha_of(const Emitter& e) {
  return e.has("alpha") ? e.node().number("alpha") : 1;
}

void combine(Emitter& e, const char* function, double factor = 1) {
  e.call(function, {{"left", e.tensor(e.node().tensor("self"))},
                    {"right", e.tensor(e.node().tensor("other"))},
                    {"result", e.result()},
                    {"then", e.posts()},
                    {"factor", factor == 1 ? "" : float_literal(factor)}});
}

void add_or_subtract(Emitter& e, double sign) {
  const double alpha = alpha_of(e);
  if (!e.is_tensor("other")) return along_line(e, 1, sign * alpha * e.node().number("other"));
  combine(e, sign > 0 ? "add" : "subtract", alpha);
}

void add(Emitter& e) {
  add_or_subtract(e, 1);
}
void subtract(Emitter& e) {
  add_or_subtract(e, -1);
}
void multiply(Emitter& e) {
  if (!e.is_tensor("other")) return along_line(e, e.node().number("other"), 0);
  combine(e, "multiply");
}

void divide(Emitter& e) {
  if (e.has("rounding_mode")) throw Unsupported("a division that rounds");
  if (!e.is_tensor("other")) return along_line(e, 1 / e.node().number("other"), 0);
  combine(e, "divide");
}

void negate(Emitter& e) {
  along_line(e, -1, 0);
}

void subtract_from(Emitter& e) {
  if (e.is_tensor("other") || alpha_of(e) != 1) throw Unsupported("rsub of two tensors, or with a factor");
  along_line(e, -1, e.node().number("other"));
}

void softmax_of(Emitter& e, const char* function) {
  const auto axis = e.dimension("dim", e.shape(e.self()).size());
  e.call(function, {{"source", e.tensor(e.self())}, {"result", e.result()}, {"axis", std::to_string(axis)}});
}
void softmax(Emitter& e) {
  softmax_of(e, "softmax");
}
void log_softmax(Emitter& e) {
  softmax_of(e, "log_softmax");
}

}  // namespace

void add_elementwise(Operations& table) {
  for (const char* name : {"relu", "relu6", "hardtanh", "hardswish", "hardsigmoid", "sigmoid", "tanh", "silu", "gelu",
                           "leaky_relu", "elu", "clamp", "clamp_min", "clamp_max"})
    table[name] = activation;
  table["exp"] = exponential;
  table["sqrt"] = square_root;
  table["abs"] = absolute;
  table["neg"] = negate;
  table["add"] = add;
  table["sub"] = subtract;
  table["mul"] = multiply;
  table["div"] = divide;
  table["rsub"] = subtract_from;
  table["softmax"] = table["_softmax"] = softmax;
  table["log_softmax"] = table["_log_softmax"] = log_softmax;
}

}  // namespace strata::generate
