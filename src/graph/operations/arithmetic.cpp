// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two operands with broadcasting, comparisons, selection, casts.
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

Described combined(const Call& call, std::string_view second) {
  const auto& self = call.self();
  if (call.node().is_tensor(second))
    return {promote(self, call.in(second)), broadcast(self.shape, call.in(second).shape)};
  const auto& number = call.node().find(second)->plain;
  if (!number.is_boolean()) call.node().number(second);  // must be one
  return {promote_with_number(self, number), self.shape};
}

std::vector<Described> arithmetic(const Call& call) {
  return {combined(call, "other")};
}

std::vector<Described> division(const Call& call) {
  auto output = combined(call, "other");
  const bool rounds = call.node().find("rounding_mode") != nullptr && !call.node().is_null("rounding_mode");
  if (!rounds) output.type = float_of(output.type);
  return {output};
}

std::vector<Described> comparison(const Call& call) {
  return {{Type::boolean, combined(call, "other").shape}};
}

std::vector<Described> broadcast_tensors(const Call& call) {
  const auto tensors = call.all("tensors");
  Shape shape;
  std::vector<Described> outputs;
  for (const auto* tensor : tensors) {
    need(tensor != nullptr, "a tensor is left out");
    shape = broadcast(shape, tensor->shape);
  }
  for (const auto* tensor : tensors) outputs.push_back({tensor->type, shape});
  return outputs;
}

std::vector<Described> power(const Call& call) {
  return {combined(call, "exponent")};
}

std::vector<Described> addcmul(const Call& call) {
  const auto &self = call.self(), &first = call.in("tensor1"), &second = call.in("tensor2");
  return {{self.type, broadcast(self.shape, broadcast(first.shape, second.shape))}};
}

std::vector<Described> truth(const Call& call) {
  return {{Type::boolean, call.self().shape}};
}

std::vector<Described> masked_fill(const Call& call) {
  return {{call.self().type, broadcast(call.self().shape, call.in("mask").shape)}};
}

std::vector<Described> where(const Call& call) {
  need(call.in("condition").type == Type::boolean, "the condition is {}", name_of(call.in("condition").type));
  if (!call.node().is_tensor("self")) {  // a number, and perhaps another
    const auto& number = call.node().find("self")->plain;
    if (!call.node().is_tensor("other")) {
      const bool whole = number.is_number_integer() && call.node().find("other")->plain.is_number_integer();
      return {{whole ? Type::int64 : Type::float32, call.in("condition").shape}};
    }
    const auto& other = call.in("other");
    return {{promote_with_number(other, number), broadcast(other.shape, call.in("condition").shape)}};
  }
  auto chosen = combined(call, "other");
  chosen.shape = broadcast(chosen.shape, call.in("condition").shape);
  return {chosen};
}

std::vector<Described> cast(const Call& call) {
  if (const auto* other = call.maybe_in("other")) return {{other->type, call.self().shape}};
  return {{type_argument(call, "dtype", call.self().type), call.self().shape}};
}

}  // namespace

std::span<const Operation> arithmetic_operations() {
  static constexpr Operation all[] = {{"_to_copy", cast},
                                      {"add", arithmetic},
                                      {"addcmul", addcmul},
                                      {"bitwise_and", arithmetic},
                                      {"bitwise_not", same_as_self},
                                      {"bitwise_or", arithmetic},
                                      {"bitwise_xor", arithmetic},
                                      {"broadcast_tensors", broadcast_tensors},
                                      {"copy", same_as_self},
                                      {"div", division},
                                      {"eq", comparison},
                                      {"fill", same_as_self},
                                      {"floor_divide", arithmetic},
                                      {"fmod", arithmetic},
                                      {"ge", comparison},
                                      {"gt", comparison},
                                      {"isinf", truth},
                                      {"isnan", truth},
                                      {"le", comparison},
                                      {"logical_and", comparison},
                                      {"logical_not", truth},
                                      {"logical_or", comparison},
                                      {"logical_xor", comparison},
                                      {"lt", comparison},
                                      {"masked_fill", masked_fill},
                                      {"maximum", arithmetic},
                                      {"minimum", arithmetic},
                                      {"mul", arithmetic},
                                      {"ne", comparison},
                                      {"ones_like", cast},
                                      {"pow", power},
                                      {"remainder", arithmetic},
                                      {"rsub", arithmetic},
                                      {"sub", arithmetic},
                                      {"to", cast},
                                      {"type_as", cast},
                                      {"where", where},
                                      {"zero", same_as_self},
                                      {"zeros_like", cast}};
  return all;
}

}  // namespace strata::graph
