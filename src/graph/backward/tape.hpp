// SPDX-License-Identifier: Apache-2.0
// What a backward rule is given: the node to differentiate, the gradients of its outputs, and a way to add nodes.
// Shapes of added values follow from the table of operations, so that none is written down twice.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/operations.hpp"

namespace strata::graph {

// A node that cannot be differentiated: why. differentiate() adds where.
class NoGradient : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Argument tensor_argument(std::string name, int value);
Argument tensors_argument(std::string name, std::vector<int> values);
Argument plain_argument(std::string name, nlohmann::json plain);

class Tape {
 public:
  explicit Tape(const Graph& network);

  // The node that a rule works on, a copy: adding nodes moves the graph's own.
  const Node& node() const { return node_; }
  Shape shape(int value) const { return graph_.value(value).shape; }
  Type type(int value) const { return graph_.value(value).type; }
  bool wants(int value) const { return needed_.contains(value); }
  bool wants(std::string_view argument) const;  // a tensor that needs a gradient; not null, not a number
  // Of output i; nullopt: nothing depends on it.
  std::optional<int> gradient(std::size_t i = 0) const;
  // The node's argument under its own name or another one.
  Argument same(std::string_view argument, std::string name = {}) const;
  // What the forward node was given besides its arguments when it was replaced (save_mean, indices, mask).
  int output(std::size_t i) const { return node_.outputs.at(i); }

  // Adds the node aten.<op> ("mm.default") in the module of node(); its outputs. Throws ShapeError, ArgumentError.
  std::vector<int> calls(const std::string& op, std::vector<Argument> arguments);
  int call(const std::string& op, std::vector<Argument> arguments) { return calls(op, std::move(arguments)).front(); }
  // A reshape; the value itself if it has that shape.
  int viewed(int value, const Shape& shape);
  // The sum over the axes along which a value of `shape` was broadcast.
  int summed_to(int value, const Shape& shape);

  // A part of the gradient of `value`; parts are added. Ignored where none is wanted.
  void give(int value, int gradient);
  void give(std::string_view argument, int gradient) { give(node_.tensor(argument), gradient); }

  // For differentiate().
  Graph& graph() { return graph_; }
  const std::map<int, int>& gradients() const { return gradients_; }
  void set_current_node(const Node& node) { node_ = node; }
  void need(int value) { needed_.insert(value); }
  int add_value(const std::string& name, const Described& described);
  std::string fresh_name(const std::string& operation);

 private:
  Graph graph_;
  Node node_;
  std::set<int> needed_;
  std::map<int, int> gradients_;  // value -> the sum of its parts so far
  std::map<std::string, int> counts_;
  std::set<std::string> names_;
};

}  // namespace strata::graph
