// SPDX-License-Identifier: Apache-2.0
#include "graph/operations/rules.hpp"

#include <algorithm>

namespace strata::graph {
namespace {

// 0 bool, 1 integer, 2 float.
int kind_of(Type type) {
  return is_floating(type) ? 2 : type == Type::boolean ? 0 : 1;
}

Type promote_types(Type a, Type b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  if (kind_of(a) == 2) {
    if (bytes_of(a) == 2 && bytes_of(b) == 2) return Type::float32;  // float16 and bfloat16
    return bytes_of(a) > bytes_of(b) ? a : b;
  }
  if (bytes_of(a) == bytes_of(b)) return Type::int16;  // int8 and uint8
  return bytes_of(a) > bytes_of(b) ? a : b;
}

}  // namespace

std::size_t axis_of(std::int64_t dim, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  need(dim >= -count && dim < count, "axis {} is out of range for {} dimensions", dim, rank);
  return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
}

std::vector<bool> axes_of(const std::vector<std::int64_t>& dims, std::size_t rank) {
  std::vector<bool> chosen(std::max<std::size_t>(rank, 1), dims.empty());
  for (const auto dim : dims) {
    const auto axis = axis_of(dim, rank);
    need(!chosen[axis], "axis {} is named twice", dim);
    chosen[axis] = true;
  }
  return chosen;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const auto& longer = a.size() >= b.size() ? a : b;
  const auto& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const auto ahead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    auto& extent = result[ahead + i];
    need(extent == shorter[i] || extent == 1 || shorter[i] == 1, "{} and {} cannot be broadcast", to_string(a),
         to_string(b));
    if (extent == 1) extent = shorter[i];
  }
  return result;
}

Type promote(const Value& a, const Value& b) {
  if (a.shape.empty() == b.shape.empty()) return promote_types(a.type, b.type);
  const auto& wide = a.shape.empty() ? b : a;
  const auto& scalar = a.shape.empty() ? a : b;
  return kind_of(scalar.type) > kind_of(wide.type) ? promote_types(a.type, b.type) : wide.type;
}

Type promote_with_number(const Value& a, const nlohmann::json& number) {
  const bool is_float = number.is_number_float() || number.is_string();  // strings: "inf"
  if (is_float && kind_of(a.type) < 2) return Type::float32;
  if (number.is_number_integer() && kind_of(a.type) < 1) return Type::int64;
  return a.type;
}

Type float_of(Type type) {
  return is_floating(type) ? type : Type::float32;
}

Type type_argument(const Call& call, std::string_view arg, Type otherwise) {
  if (call.node().find(arg) == nullptr) return otherwise;
  const auto name = call.node().maybe_text(arg);
  if (!name) return otherwise;
  const auto type = type_named(*name);
  need(type.has_value(), "'{}' is '{}', an unknown type", arg, *name);
  return *type;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  // a zero makes it nothing, whatever the others multiply to
  if (std::any_of(factors.begin(), factors.end(), [](auto f) { return f == 0; })) return 0;
  std::int64_t result = 1;
  for (const auto factor : factors) result = times(result, factor);
  return result;
}

std::int64_t elements(const Shape& shape) {
  return elements_of(shape).value_or(std::numeric_limits<std::int64_t>::max());
}

std::vector<Described> masked(const Call& call, const std::vector<Described>& all) {
  const auto* mask = call.node().find("output_mask");
  need(mask != nullptr && mask->plain.is_array() && mask->plain.size() == all.size(), "output_mask has not {} flags",
       all.size());
  std::vector<Described> outputs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    need(mask->plain[i].is_boolean(), "output_mask is {}", mask->plain.dump());
    if (mask->plain[i].get<bool>()) outputs.push_back(all[i]);
  }
  need(!outputs.empty(), "output_mask wants nothing");
  return outputs;
}

std::vector<Described> same_as_self(const Call& call) {
  return {{call.self().type, call.self().shape}};
}

std::vector<Described> float_like_self(const Call& call) {
  return {{float_of(call.self().type), call.self().shape}};
}

}  // namespace strata::graph
