// SPDX-License-Identifier: Apache-2.0
// What one node is expanded into (expand.hpp): the nodes that stand in its place and give its outputs.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/backward/tape.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {

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

  // aten.<op>, each of whose outputs is a new value, or the one that `into` has in its place. Gives them all.
  std::vector<int> calls(const std::string& op, std::vector<Argument> arguments, const std::string& name,
                         std::vector<int> into = {}) {
    Node added = of_;
    added.op = "aten." + op;
    added.args = std::move(arguments);
    added.outputs.clear();
    added.name = name.empty() ? of_.name : of_.name + "." + name;
    const auto outputs = find_operation(added.operation())->outputs(Call(graph_, added));
    into.resize(outputs.size(), -1);
    for (std::size_t i = 0; i < into.size(); ++i) {
      if (into[i] >= 0) continue;
      Value value;
      value.name = i == 0 ? added.name : added.name + "." + std::to_string(i);
      value.type = outputs[i].type;
      value.shape = outputs[i].shape;
      graph_.values.push_back(std::move(value));
      into[i] = static_cast<int>(graph_.values.size()) - 1;
    }
    added.outputs = into;
    nodes_.push_back(std::move(added));
    return into;
  }
  // The same of an operation with one output.
  int call(const std::string& op, std::vector<Argument> arguments, const std::string& name, int into = -1) {
    return calls(op, std::move(arguments), name, {into}).front();
  }
  // The last call, which takes the node's name.
  void end(const std::string& op, std::vector<Argument> arguments) { call(op, std::move(arguments), "", result()); }
  int viewed(int value, const Shape& to, const std::string& name, int into = -1) {
    return call("view.default", {tensor_argument("self", value), plain_argument("size", to)}, name, into);
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

// By the operation's name; a rule that writes nothing leaves the node as it is.
using Expansions = std::map<std::string_view, void (*)(Expansion&)>;

void add_losses(Expansions& table);
void add_recurrent(Expansions& table);

}  // namespace strata::graph
