// SPDX-License-Identifier: Apache-2.0
// What is applied to each element, softmax along an axis, and dropout.
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

std::vector<Described> softmax(const Call& call) {
  const auto& self = call.self();
  axis_of(call.node().integer("dim"), self.shape.size());
  return {{type_argument(call, "dtype", float_of(self.type)), self.shape}};
}

std::vector<Described> dropout(const Call& call) {
  const double p = call.node().number("p");
  need(p >= 0 && p <= 1, "p is {}, a probability is wanted", p);
  return same_as_self(call);
}

// The result, and which elements are kept.
std::vector<Described> native_dropout(const Call& call) {
  auto outputs = dropout(call);
  outputs.push_back({Type::boolean, call.self().shape});
  return outputs;
}

std::vector<Described> clamp(const Call& call) {
  Described output{call.self().type, call.self().shape};
  for (const char* bound : {"min", "max"}) {
    const auto* limit = call.node().find(bound);
    if (limit == nullptr) continue;
    if (limit->kind == Argument::Kind::tensor) {
      output = {promote(call.self(), call.in(bound)), broadcast(output.shape, call.in(bound).shape)};
    } else if (call.node().maybe_number(bound)) {
      output.type = promote_with_number(call.self(), limit->plain);
    }
  }
  return {output};
}

}  // namespace

std::span<const Operation> activation_operations() {
  static constexpr Operation all[] = {{"_log_softmax", softmax},     {"_softmax", softmax},
                                      {"abs", same_as_self},         {"bernoulli", same_as_self},
                                      {"ceil", same_as_self},        {"clamp", clamp},
                                      {"clamp_max", clamp},          {"clamp_min", clamp},
                                      {"cos", float_like_self},      {"dropout", dropout},
                                      {"elu", same_as_self},         {"erf", float_like_self},
                                      {"exp", float_like_self},      {"expm1", float_like_self},
                                      {"floor", same_as_self},       {"gelu", same_as_self},
                                      {"hardsigmoid", same_as_self}, {"hardswish", same_as_self},
                                      {"hardtanh", same_as_self},    {"leaky_relu", same_as_self},
                                      {"log", float_like_self},      {"log1p", float_like_self},
                                      {"log_sigmoid", same_as_self}, {"log_softmax", softmax},
                                      {"mish", same_as_self},        {"native_dropout", native_dropout},
                                      {"neg", same_as_self},         {"reciprocal", float_like_self},
                                      {"relu", same_as_self},        {"relu6", same_as_self},
                                      {"round", same_as_self},       {"rsqrt", float_like_self},
                                      {"sigmoid", float_like_self},  {"sign", same_as_self},
                                      {"silu", same_as_self},        {"sin", float_like_self},
                                      {"softmax", softmax},          {"softplus", same_as_self},
                                      {"sqrt", float_like_self},     {"square", same_as_self},
                                      {"trunc", same_as_self},       {"tanh", float_like_self}};
  return all;
}

}  // namespace strata::graph
