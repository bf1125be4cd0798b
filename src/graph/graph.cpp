// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <map>

namespace strata::graph {
namespace {

struct About {
  std::string_view torch, safetensors;
  std::int64_t bytes;
};

constexpr std::array<About, 10> types{{{"float32", "F32", 4},
                                       {"float64", "F64", 8},
                                       {"float16", "F16", 2},
                                       {"bfloat16", "BF16", 2},
                                       {"int64", "I64", 8},
                                       {"int32", "I32", 4},
                                       {"int16", "I16", 2},
                                       {"int8", "I8", 1},
                                       {"uint8", "U8", 1},
                                       {"bool", "BOOL", 1}}};

const About& about(Type type) {
  return types[static_cast<std::size_t>(type)];
}

}  // namespace

std::string_view name_of(Type type) {
  return about(type).torch;
}
std::string_view safetensors_name(Type type) {
  return about(type).safetensors;
}
std::int64_t bytes_of(Type type) {
  return about(type).bytes;
}
bool is_floating(Type type) {
  return type <= Type::bfloat16;
}
std::string_view name_of(Mode mode) {
  return mode == Mode::infer ? "infer" : "train";
}

std::optional<Type> type_named(std::string_view torch_name) {
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i].torch == torch_name) return static_cast<Type>(i);
  return std::nullopt;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::optional<std::int64_t> elements_of(const Shape& shape) {
  bool empty = false;
  for (const auto extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  std::int64_t product = 1;
  for (const auto extent : shape) {
    if (product > std::numeric_limits<std::int64_t>::max() / extent) return std::nullopt;
    product *= extent;
  }
  return product;
}

std::string Node::operation() const {
  const std::string_view all(op);
  const auto last = all.rfind('.');
  const auto whole = all.substr(0, last == std::string_view::npos ? all.size() : last);
  constexpr std::string_view own = "aten.";
  return std::string(whole.substr(0, own.size()) == own ? whole.substr(own.size()) : whole);
}

std::string Node::overload() const {
  const auto last = op.rfind('.');
  return last == std::string::npos ? std::string() : op.substr(last + 1);
}

std::string Node::where() const {
  return fmt::format("node '{}' ({}) in {} ({}){}{}", name, operation(), module.empty() ? "the network itself" : module,
                     module_type, source.empty() ? "" : ", ", source);
}

std::string operations_with_places(const std::vector<const Node*>& nodes) {
  std::map<std::string, std::pair<const Node*, int>> by_operation;
  for (const auto* node : nodes) {
    auto& [first, count] = by_operation[node->operation()];
    if (count++ == 0) first = node;
  }
  std::string words;
  for (const auto& [operation, example] : by_operation) {
    const auto& [node, count] = example;
    words += fmt::format("{}{} ({}{}{}{})", words.empty() ? "" : ", ", operation,
                         node->module.empty() ? "the network itself" : node->module, node->source.empty() ? "" : ", ",
                         node->source, count > 1 ? fmt::format(" and {} more", count - 1) : "");
  }
  return words;
}

const Argument* Node::find(std::string_view arg) const {
  for (const auto& argument : args)
    if (argument.name == arg) return &argument;
  return nullptr;
}

const Argument& Node::get(std::string_view arg) const {
  if (const auto* argument = find(arg)) return *argument;
  std::vector<std::string_view> known;
  for (const auto& argument : args) known.push_back(argument.name);
  throw ArgumentError(fmt::format("{} has no argument '{}'; it has: {}", where(), arg, fmt::join(known, ", ")));
}

const nlohmann::json& Node::get_plain(std::string_view arg, const char* expected) const {
  const auto& argument = get(arg);
  if (argument.kind != Argument::Kind::plain)
    throw ArgumentError(fmt::format("{}: argument '{}' is {}, expected {}", where(), arg,
                                    argument.kind == Argument::Kind::tensor ? "a tensor" : "a list of tensors",
                                    expected));
  return argument.plain;
}

bool Node::is_null(std::string_view arg) const {
  const auto& argument = get(arg);
  return argument.kind == Argument::Kind::plain && argument.plain.is_null();
}

bool Node::is_tensor(std::string_view arg) const {
  return get(arg).kind == Argument::Kind::tensor;
}

int Node::tensor(std::string_view arg) const {
  const auto& argument = get(arg);
  if (argument.kind == Argument::Kind::tensor) return argument.values.front();
  throw ArgumentError(
      fmt::format("{}: argument '{}' is {}, expected a tensor", where(), arg,
                  argument.kind == Argument::Kind::plain ? argument.plain.dump() : "a list of tensors"));
}

std::optional<int> Node::maybe_tensor(std::string_view arg) const {
  if (is_null(arg)) return std::nullopt;
  return tensor(arg);
}

const std::vector<int>& Node::tensors(std::string_view arg) const {
  const auto& argument = get(arg);
  if (argument.kind == Argument::Kind::tensors) return argument.values;
  throw ArgumentError(fmt::format("{}: argument '{}' is {}, expected a list of tensors", where(), arg,
                                  argument.kind == Argument::Kind::plain ? argument.plain.dump() : "a tensor"));
}

namespace {

[[noreturn]] void wrong(const Node& node, std::string_view arg, const nlohmann::json& got, const char* expected) {
  throw ArgumentError(fmt::format("{}: argument '{}' is {}, expected {}", node.where(), arg, got.dump(), expected));
}

// A JSON integer beyond int64 would wrap around.
std::optional<std::int64_t> whole(const nlohmann::json& got) {
  if (got.is_number_unsigned() &&
      got.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  if (!got.is_number_integer()) return std::nullopt;
  return got.get<std::int64_t>();
}

}  // namespace

std::int64_t Node::integer(std::string_view arg) const {
  const auto& got = get_plain(arg, "an integer");
  if (const auto value = whole(got)) return *value;
  wrong(*this, arg, got, "an integer");
}

std::optional<std::int64_t> Node::maybe_integer(std::string_view arg) const {
  if (is_null(arg)) return std::nullopt;
  return integer(arg);
}

std::vector<std::int64_t> Node::ints(std::string_view arg) const {
  const auto& got = get_plain(arg, "a list of integers");
  if (!got.is_array()) wrong(*this, arg, got, "a list of integers");
  std::vector<std::int64_t> all;
  for (const auto& element : got)
    if (const auto value = whole(element))
      all.push_back(*value);
    else
      wrong(*this, arg, got, "a list of integers");
  return all;
}

std::optional<std::vector<std::int64_t>> Node::maybe_ints(std::string_view arg) const {
  if (is_null(arg)) return std::nullopt;
  return ints(arg);
}

double Node::number(std::string_view arg) const {
  const auto& got = get_plain(arg, "a number");
  if (got.is_number()) return got.get<double>();
  if (got == "inf") return std::numeric_limits<double>::infinity();
  if (got == "-inf") return -std::numeric_limits<double>::infinity();
  if (got == "nan") return std::numeric_limits<double>::quiet_NaN();
  wrong(*this, arg, got, "a number");
}

std::optional<double> Node::maybe_number(std::string_view arg) const {
  if (is_null(arg)) return std::nullopt;
  return number(arg);
}

bool Node::flag(std::string_view arg) const {
  const auto& got = get_plain(arg, "true or false");
  if (!got.is_boolean()) wrong(*this, arg, got, "true or false");
  return got.get<bool>();
}

std::string Node::text(std::string_view arg) const {
  const auto& got = get_plain(arg, "a string");
  if (!got.is_string()) wrong(*this, arg, got, "a string");
  return got.get<std::string>();
}

std::optional<std::string> Node::maybe_text(std::string_view arg) const {
  if (is_null(arg)) return std::nullopt;
  return text(arg);
}

}  // namespace strata::graph
