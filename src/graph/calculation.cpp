// SPDX-License-Identifier: Apache-2.0
#include "graph/calculation.hpp"

#include <algorithm>
#include <map>

namespace strata::graph {
namespace {

bool is_of_libraries(Type type) {
  return type == Type::float32 || type == Type::bfloat16;
}

class Builder {
 public:
  Builder(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  const Node& node() const { return node_; }
  Type result() const { return graph_.value(node_.outputs.front()).type; }
  Type type_of(std::string_view argument) const { return graph_.value(node_.tensor(argument)).type; }
  bool has(std::string_view argument) const { return node_.find(argument) != nullptr && !node_.is_null(argument); }
  // A factor of the second operand that changes nothing.
  bool without_factor() const { return !has("alpha") || node_.number("alpha") == 1; }

  // `counts`: it has a say in what type is calculated.
  Builder& operand(std::string_view name, bool counts = true) {
    Calculation::Operand operand;
    if (node_.is_tensor(name)) {
      operand.value = node_.tensor(name);
      made_.in_float |= counts && is_of_libraries(graph_.value(operand.value).type);
    } else {
      const auto& plain = node_.find(name) == nullptr ? nlohmann::json() : node_.find(name)->plain;
      operand.is_whole = plain.is_boolean() || plain.is_number_integer();
      operand.number = plain.is_boolean() ? (plain.get<bool>() ? 1.0 : 0.0) : node_.number(name);
      operand.whole = plain.is_number_integer() ? plain.get<std::int64_t>() : static_cast<std::int64_t>(operand.number);
      made_.in_float |= counts && !operand.is_whole;
    }
    made_.operands.push_back(operand);
    return *this;
  }
  Builder& in_float(bool is) {
    made_.in_float |= is;
    return *this;
  }
  Calculation as(std::string how) {
    made_.how = std::move(how);
    return std::move(made_);
  }

 private:
  const Graph& graph_;
  const Node& node_;
  Calculation made_;
};

using Made = std::optional<Calculation>;
using Make = Made (*)(Builder&);

// Of one tensor.
Made unary(Builder& b) {
  return b.operand("self").as(b.node().operation());
}
// What always gives a float.
Made function(Builder& b) {
  return b.operand("self").in_float(true).as(b.node().operation());
}
Made bitwise_not(Builder& b) {
  return b.operand("self").as(b.type_of("self") == Type::boolean ? "logical_not" : "bitwise_not");
}
Made cast(Builder& b) {
  return b.operand("self").in_float(is_of_libraries(b.result())).as("to");
}

Made binary(Builder& b) {
  return b.operand("self").operand("other").as(b.node().operation());
}
Made sum(Builder& b) {
  return b.without_factor() ? binary(b) : std::nullopt;
}
Made reverse_difference(Builder& b) {
  if (!b.without_factor()) return std::nullopt;
  return b.operand("other").operand("self").as("sub");
}
Made quotient(Builder& b) {
  const auto rounding = b.has("rounding_mode") ? b.node().text("rounding_mode") : std::string();
  return b.operand("self").operand("other").in_float(rounding.empty()).as(rounding.empty() ? "div" : "div_" + rounding);
}
Made floor_quotient(Builder& b) {
  return b.operand("self").operand("other").as("div_floor");
}
Made power(Builder& b) {
  return b.operand("self").operand("exponent").as("pow");
}

Made where(Builder& b) {
  return b.operand("condition", false)
      .operand("self")
      .operand("other")
      .in_float(is_of_libraries(b.result()))
      .as("where");
}
Made masked_fill(Builder& b) {
  return b.operand("mask", false).operand("value").operand("self").in_float(is_of_libraries(b.result())).as("where");
}

// A bound on one side alone.
Made clamp_min(Builder& b) {
  return b.operand("self").operand("min").as("maximum");
}
Made clamp_max(Builder& b) {
  return b.operand("self").operand("max").as("minimum");
}

using Table = std::map<std::string_view, Make>;

const Table& always() {
  static const Table table = [] {
    Table all;
    for (const char* name : {"sign", "floor", "ceil", "round", "trunc", "logical_not", "isnan", "isinf"})
      all[name] = unary;
    for (const char* name : {"expm1", "log", "log1p", "rsqrt", "sin", "cos", "erf", "reciprocal", "softplus"})
      all[name] = function;
    for (const char* name : {"remainder", "fmod", "minimum", "maximum", "eq", "ne", "lt", "le", "gt", "ge",
                             "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"})
      all[name] = binary;
    for (const char* name : {"to", "_to_copy", "type_as"}) all[name] = cast;
    all["bitwise_not"] = bitwise_not;
    all["floor_divide"] = floor_quotient;
    all["pow"] = power;
    all["where"] = where;
    all["masked_fill"] = masked_fill;
    return all;
  }();
  return table;
}

const Table& where_typed() {
  static const Table table{
      {"add", sum},      {"sub", sum},   {"rsub", reverse_difference}, {"mul", binary},          {"div", quotient},
      {"neg", unary},    {"abs", unary}, {"clamp_min", clamp_min},     {"clamp_max", clamp_max}, {"exp", function},
      {"sqrt", function}};
  return table;
}

}  // namespace

bool is_typed(const Graph& graph, const Node& node) {
  const auto typed = [&](int value) { return value >= 0 && !is_of_libraries(graph.value(value).type); };
  return std::any_of(node.outputs.begin(), node.outputs.end(), typed) ||
         std::any_of(node.args.begin(), node.args.end(), [&](const Argument& argument) {
           return std::any_of(argument.values.begin(), argument.values.end(), typed);
         });
}

std::vector<std::string_view> calculated_operations() {
  std::vector<std::string_view> names;
  for (const auto& [name, make] : always()) names.push_back(name);
  return names;
}

bool is_calculated_where_typed(std::string_view operation) {
  return where_typed().contains(operation);
}

std::optional<Calculation> calculation_of(const Graph& graph, const Node& node) {
  const auto name = node.operation();
  auto it = always().find(name);
  if (it == always().end()) {
    it = where_typed().find(name);
    if (it == where_typed().end() || !is_typed(graph, node)) return std::nullopt;
  }
  Builder builder(graph, node);
  return it->second(builder);
}

}  // namespace strata::graph
