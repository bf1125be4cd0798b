// SPDX-License-Identifier: Apache-2.0
#include "graph/expand/expansion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/operations/rules.hpp"

namespace strata::graph {

bool Expansion::is_weight(int value) const {
  const auto is = [&](const Named& named) { return named.value == value; };
  return std::any_of(graph_.parameters.begin(), graph_.parameters.end(), is) ||
         std::any_of(graph_.buffers.begin(), graph_.buffers.end(), is);
}

bool Expansion::is_computed(int value) const {
  while (graph_.value(value).producer >= 0) {
    const Node& producer = graph_.nodes[static_cast<std::size_t>(graph_.value(value).producer)];
    const auto* operation = find_operation(producer.operation());
    if (operation == nullptr || operation->aliasing != Aliasing::reshape) return true;
    value = producer.tensor("self");
  }
  return graph_.value(value).origin == Origin::input;
}

bool Expansion::is_read(std::size_t i) const {
  const auto is = [&](const Named& named) { return named.value == result(i); };
  return !graph_.value(result(i)).consumers.empty() || std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is) ||
         std::any_of(graph_.updates.begin(), graph_.updates.end(), is);
}

int Expansion::value_or_none(const char* argument) const {
  return of_.find(argument) == nullptr ? -1 : of_.maybe_tensor(argument).value_or(-1);
}

std::size_t Expansion::axis(const char* argument, std::size_t rank) const {
  return axis_of(of_.integer(argument), rank);
}

Node Expansion::node_of(const std::string& op, std::vector<Argument> arguments) const {
  Node made = of_;
  made.op = "aten." + op;
  made.args = std::move(arguments);
  made.outputs.clear();
  return made;
}

namespace {

std::vector<Described> outputs_of(const Graph& graph, const Node& node) {
  const auto* operation = find_operation(node.operation());
  if (operation == nullptr) throw ShapeError(fmt::format("{} is in no table", node.op));
  return operation->outputs(Call(graph, node));
}

}  // namespace

Described Expansion::described(const std::string& op, std::vector<Argument> arguments) const {
  return outputs_of(graph_, node_of(op, std::move(arguments))).at(0);
}

std::vector<int> Expansion::calls(const std::string& op, std::vector<Argument> arguments, const std::string& name,
                                  const std::vector<int>& into) {
  Node added = node_of(op, std::move(arguments));
  if (!name.empty()) added.name += "." + name;
  const auto described = outputs_of(graph_, added);
  for (std::size_t i = 0; i < described.size(); ++i) {
    if (i < into.size() && into[i] >= 0) {
      added.outputs.push_back(into[i]);
      continue;
    }
    Value value;
    value.name = i == 0 ? added.name : fmt::format("{}_out{}", added.name, i);
    value.type = described[i].type;
    value.shape = described[i].shape;
    graph_.values.push_back(std::move(value));
    added.outputs.push_back(static_cast<int>(graph_.values.size()) - 1);
  }
  nodes_.push_back(added);
  return added.outputs;
}

namespace {

// Sums have a factor.
std::vector<Argument> joining(std::string_view op, Argument self, Argument other) {
  std::vector<Argument> arguments{std::move(self), std::move(other)};
  if (op.starts_with("add.") || op.starts_with("sub.")) arguments.push_back(plain_argument("alpha", 1));
  return arguments;
}

}  // namespace

int Expansion::with_number(const char* op, int self, const nlohmann::json& number, const std::string& name) {
  return call(op, joining(op, tensor_argument("self", self), plain_argument("other", number)), name);
}

int Expansion::of_two(const char* op, int self, int other, const std::string& name) {
  return call(op, joining(op, tensor_argument("self", self), tensor_argument("other", other)), name);
}

int Expansion::clamped(int self, const nlohmann::json& low, const nlohmann::json& high, const std::string& name) {
  return call("clamp.default", {tensor_argument("self", self), plain_argument("min", low), plain_argument("max", high)},
              name);
}

int Expansion::sliced(int value, std::size_t axis, std::int64_t begin, std::int64_t end, const std::string& name) {
  return call("slice.Tensor",
              {tensor_argument("self", value), plain_argument("dim", axis), plain_argument("start", begin),
               plain_argument("end", end), plain_argument("step", 1)},
              name);
}

void Expansion::end_with(std::vector<Argument> arguments) {
  nodes_.push_back(of_);
  nodes_.back().args = std::move(arguments);
}

}  // namespace strata::graph
