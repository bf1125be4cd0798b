// SPDX-License-Identifier: Apache-2.0
// What a rule of expand.cpp is given: the node, and a way to write others in its place. Shapes and types of what is
// added follow from the table of operations.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/backward/tape.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {

// What a node is expanded into: nodes that stand in its place, of which the last gives its output.
class Expansion {
 public:
  Expansion(Graph& graph, const Node& of) : graph_(graph), of_(of) {}

  const Node& node() const { return of_; }
  Shape shape(int value) const { return graph_.value(value).shape; }
  Type type(int value) const { return graph_.value(value).type; }
  int result(std::size_t i = 0) const { return of_.outputs.at(i); }
  bool infers() const { return graph_.mode == Mode::infer; }
  // A parameter, or a buffer.
  bool is_weight(int value) const {
    const auto is = [&](const Named& named) { return named.value == value; };
    return std::any_of(graph_.parameters.begin(), graph_.parameters.end(), is) ||
           std::any_of(graph_.buffers.begin(), graph_.buffers.end(), is);
  }
  int value_or_none(const char* argument) const {
    return of_.find(argument) == nullptr ? -1 : of_.maybe_tensor(argument).value_or(-1);
  }

  // aten.<op>, whose output is a new value or `into`.
  int call(const std::string& op, std::vector<Argument> arguments, const std::string& name, int into = -1) {
    Node added = of_;
    added.op = "aten." + op;
    added.args = std::move(arguments);
    added.name = name.empty() ? of_.name : of_.name + "." + name;
    if (into < 0) {
      const auto described = find_operation(added.operation())->outputs(Call(graph_, added)).at(0);
      Value value;
      value.name = added.name;
      value.type = described.type;
      value.shape = described.shape;
      graph_.values.push_back(std::move(value));
      into = static_cast<int>(graph_.values.size()) - 1;
    }
    added.outputs = {into};
    nodes_.push_back(std::move(added));
    return into;
  }
  // The last call, which takes the node's name.
  void end(const std::string& op, std::vector<Argument> arguments) { call(op, std::move(arguments), "", result()); }
  int viewed(int value, const Shape& to, const std::string& name) {
    return call("view.default", {tensor_argument("self", value), plain_argument("size", to)}, name);
  }
  // The node itself with other arguments.
  void end_with(std::vector<Argument> arguments) {
    nodes_.push_back(of_);
    nodes_.back().args = std::move(arguments);
  }

  std::vector<Node> nodes() && { return std::move(nodes_); }

 private:
  Graph& graph_;
  const Node& of_;
  std::vector<Node> nodes_;
};

using Expand = void (*)(Expansion&);
using Expansions = std::map<std::string_view, Expand>;

// Losses of classes, of shares and of values.
void add_losses(Expansions& table);

}  // namespace strata::graph
