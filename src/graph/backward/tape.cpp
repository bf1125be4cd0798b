// SPDX-License-Identifier: Apache-2.0
#include "graph/backward/tape.hpp"

#include <fmt/format.h>

namespace strata::graph {

Argument tensor_argument(std::string name, int value) {
  return {.name = std::move(name), .kind = Argument::Kind::tensor, .values = {value}};
}
Argument tensors_argument(std::string name, std::vector<int> values) {
  return {.name = std::move(name), .kind = Argument::Kind::tensors, .values = std::move(values)};
}
Argument plain_argument(std::string name, nlohmann::json plain) {
  return {.name = std::move(name), .kind = Argument::Kind::plain, .plain = std::move(plain)};
}

Tape::Tape(const Graph& network) : graph_(network) {
  for (const auto& node : graph_.nodes) names_.insert(node.name);
}

bool Tape::wants(std::string_view argument) const {
  const auto* operand = node_.find(argument);
  return operand != nullptr && operand->kind == Argument::Kind::tensor && wants(operand->values.front());
}

std::optional<int> Tape::gradient(std::size_t i) const {
  const auto it = gradients_.find(node_.outputs.at(i));
  if (it == gradients_.end()) return std::nullopt;
  return it->second;
}

Argument Tape::same(std::string_view argument, std::string name) const {
  const auto* entry = node_.find(argument);
  if (entry == nullptr) throw ArgumentError(fmt::format("{} has no argument '{}'", node_.where(), argument));
  Argument copy = *entry;
  if (!name.empty()) copy.name = std::move(name);
  return copy;
}

std::string Tape::fresh_name(const std::string& operation) {
  auto& count = counts_[operation];
  std::string name;
  do {
    name = count == 0 ? operation : fmt::format("{}_{}", operation, count);
    ++count;
  } while (!names_.insert(name).second);
  return name;
}

int Tape::add_value(const std::string& name, const Described& described) {
  Value value;
  value.name = name;
  value.type = described.type;
  value.shape = described.shape;
  graph_.values.push_back(std::move(value));
  return static_cast<int>(graph_.values.size()) - 1;
}

std::vector<int> Tape::calls(const std::string& op, std::vector<Argument> arguments) {
  Node added;
  added.op = "aten." + op;
  added.args = std::move(arguments);
  added.module = node_.module;
  added.module_type = node_.module_type;
  added.source = node_.source;
  added.name = fresh_name(added.operation());
  const auto* operation = find_operation(added.operation());
  if (operation == nullptr) throw NoGradient(fmt::format("its rule needs the operation {}, which is in no table", op));
  const auto outputs = operation->outputs(Call(graph_, added));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    added.outputs.push_back(add_value(i == 0 ? added.name : fmt::format("{}_out{}", added.name, i), outputs[i]));
  graph_.nodes.push_back(added);
  return added.outputs;
}

int Tape::viewed(int value, const Shape& target) {
  if (shape(value) == target) return value;
  return call("view.default", {tensor_argument("self", value), plain_argument("size", target)});
}

int Tape::summed_to(int value, const Shape& target) {
  const Shape own = shape(value);
  if (own == target) return value;
  const auto ahead = own.size() - target.size();
  Shape axes;
  for (std::size_t i = 0; i < own.size(); ++i)
    if (i < ahead || own[i] != target[i - ahead]) axes.push_back(static_cast<std::int64_t>(i));
  int sum = value;
  if (!axes.empty())
    sum = call("sum.dim_IntList", {tensor_argument("self", value), plain_argument("dim", axes),
                                   plain_argument("keepdim", true), plain_argument("dtype", nullptr)});
  return viewed(sum, target);
}

void Tape::give(int value, int gradient) {
  if (!wants(value)) return;
  if (shape(gradient) != shape(value))
    throw NoGradient(fmt::format("its rule gives a gradient {} for the tensor '{}' {}", to_string(shape(gradient)),
                                 graph_.value(value).name, to_string(shape(value))));
  const auto [entry, first] = gradients_.emplace(value, gradient);
  if (!first)
    entry->second = call("add.Tensor", {tensor_argument("self", entry->second), tensor_argument("other", gradient),
                                        plain_argument("alpha", 1)});
}

}  // namespace strata::graph
