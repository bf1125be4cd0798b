// SPDX-License-Identifier: Apache-2.0
// What a rule that writes an operation as others is given: the node, and a way to put nodes in its place. The rules are
// in the files of their families; expand.hpp says what they make.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/backward/tape.hpp"

namespace strata::graph {

// What a node is expanded into: nodes that stand in its place, which give those of its outputs that are read. Without
// any the node stays.
class Expansion {
 public:
  Expansion(Graph& graph, const Node& of) : graph_(graph), of_(of) {}

  const Node& node() const { return of_; }
  Shape shape(int value) const { return graph_.value(value).shape; }
  Type type(int value) const { return graph_.value(value).type; }
  int result(std::size_t i = 0) const { return of_.outputs.at(i); }
  bool infers() const { return graph_.mode == Mode::infer; }
  bool is_weight(int value) const;  // a parameter, or a buffer
  // Something new in every run, no part of the network nor another shape of such.
  bool is_computed(int value) const;
  // Whether anybody reads output i: a node, the network's caller, a buffer that it updates.
  bool is_read(std::size_t i) const;
  int value_or_none(const char* argument) const;
  bool has(const char* argument) const { return of_.find(argument) != nullptr && !of_.is_null(argument); }
  // An axis, counted from the front.
  std::size_t axis(const char* argument, std::size_t rank) const;

  // What aten.<op> would give first.
  Described described(const std::string& op, std::vector<Argument> arguments) const;
  // aten.<op>, whose outputs are new values, or those of `into` where they are not -1.
  std::vector<int> calls(const std::string& op, std::vector<Argument> arguments, const std::string& name,
                         const std::vector<int>& into = {});
  int call(const std::string& op, std::vector<Argument> arguments, const std::string& name, int into = -1) {
    return calls(op, std::move(arguments), name, {into}).front();
  }
  // The last call, which takes the node's name.
  void end(const std::string& op, std::vector<Argument> arguments) { call(op, std::move(arguments), "", result()); }
  // The first output is this value, in the output's shape.
  void end_as(int value) {
    end("view.default", {tensor_argument("self", value), plain_argument("size", shape(result()))});
  }
  int viewed(int value, const Shape& to, const std::string& name, int into = -1) {
    return call("view.default", {tensor_argument("self", value), plain_argument("size", to)}, name, into);
  }
  // aten.<op> of one tensor, of it and a number, of two.
  int of_one(const char* op, int self, const std::string& name) {
    return call(op, {tensor_argument("self", self)}, name);
  }
  int with_number(const char* op, int self, const nlohmann::json& number, const std::string& name);
  int of_two(const char* op, int self, int other, const std::string& name);
  int clamped(int self, const nlohmann::json& low, const nlohmann::json& high, const std::string& name);
  // Of an axis: the elements from `begin` to before `end`.
  int sliced(int value, std::size_t axis, std::int64_t begin, std::int64_t end, const std::string& name);
  // The node itself with other arguments.
  void end_with(std::vector<Argument> arguments);

  std::vector<Node>& nodes() { return nodes_; }

 private:
  Node node_of(const std::string& op, std::vector<Argument> arguments) const;

  Graph& graph_;
  const Node& of_;
  std::vector<Node> nodes_;
};

struct ExpansionRule {
  std::string_view name;  // ATen's, without overload
  void (*expand)(Expansion&) = nullptr;
};

std::span<const ExpansionRule> activation_expansions();
std::span<const ExpansionRule> extreme_expansions();
std::span<const ExpansionRule> function_expansions();
std::span<const ExpansionRule> image_expansions();
std::span<const ExpansionRule> loss_expansions();
std::span<const ExpansionRule> move_expansions();
std::span<const ExpansionRule> norm_expansions();
std::span<const ExpansionRule> pad_expansions();
std::span<const ExpansionRule> place_expansions();
std::span<const ExpansionRule> pooling_expansions();
std::span<const ExpansionRule> recurrent_expansions();
std::span<const ExpansionRule> statistics_expansions();

}  // namespace strata::graph
