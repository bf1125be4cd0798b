// SPDX-License-Identifier: Apache-2.0
// What an operation's family (operations/*.cpp) is given to write one step of a program as a statement of C++: its
// arguments, and names of its tensors. What cannot be written is thrown as Unsupported.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "compiler/program.hpp"
#include "generate/names.hpp"
#include "graph/calculation.hpp"

namespace strata::generate {

// An operation, or a case of one, that the target lacks; `what()` says which, without its place in the model.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How the code names each value of a program: constants of the memory plan, weights by their names in the files.
class ValueNames {
 public:
  // `in_constants`: names of buffers that are not in the file of weights.
  ValueNames(const compiler::Program& program, const std::set<std::string>& in_constants);
  // "v::relu_1", for what lies in the arena or with the caller.
  std::string tensor(int value) const;
  // The name alone, of a value of the plan or of a weight that is computed.
  const std::string& name(int value) const { return names_.at(static_cast<std::size_t>(value)); }
  // 'p.weight("conv1.weight", {64, 3, 7, 7})', or the name of one that load steps compute.
  std::string weight(int value) const;
  bool is_weight(int value) const;
  // The constants of the plan: a line for each value that lies in the arena or with the caller.
  std::vector<std::string> plan() const;

 private:
  const compiler::Program& program_;
  std::vector<std::string> names_;
  std::map<int, std::string> files_;     // weights of files: the expression that reads them
  std::map<int, int> inputs_, outputs_;  // of the caller: by storage
};

using Fields = std::vector<std::pair<std::string, std::string>>;

class Emitter {
 public:
  Emitter(const compiler::Program& program, const ValueNames& names, const compiler::Step& step)
      : program_(program), names_(names), step_(step) {}

  const compiler::Step& step() const { return step_; }
  const graph::Node& node() const { return step_.node; }
  const graph::Shape& shape(int value) const { return program_.value(value).shape; }
  graph::Type type(int value) const { return program_.value(value).type; }
  compiler::Target target() const { return program_.target; }
  std::optional<graph::Calculation> calculation() const { return graph::calculation_of(program_.graph, node()); }
  compiler::Layout layout(int value) const { return program_.place(value).layout; }
  // Whether anybody reads the value.
  bool is_used(int value) const { return program_.place(value).in != compiler::Place::In::none; }
  // Arguments by their names in ATen's schema.
  bool has(std::string_view argument) const { return node().find(argument) != nullptr && !node().is_null(argument); }
  bool is_tensor(std::string_view argument) const { return has(argument) && node().is_tensor(argument); }
  // The first tensor argument, which ATen calls self or input.
  int self() const;
  int output(std::size_t i = 0) const { return node().outputs.at(i); }
  // Exactly `count` integers, or one for all of them.
  std::vector<std::int64_t> integers(std::string_view argument, std::size_t count) const;
  // A dimension, counted from the front.
  std::int64_t dimension(std::string_view argument, std::size_t rank) const;

  // A value as an operand of a run, or as the result; in its own layout. Throws for one that the target has not.
  std::string tensor(int value) const;
  std::string result(std::size_t i = 0) const { return tensor(output(i)); }
  // A value as a weight that the program may store as it likes.
  std::string weight(int value) const;
  // The name of a weight in its file.
  const std::string& file_name(int value) const;
  // The step's posts as a list; empty: there are none.
  std::string posts() const;

  // A statement: function(p, {.field = text, ...}); fields without text are left out.
  void call(const std::string& function, Fields fields);
  // The same with other words around the fields.
  void call_between(const std::string& head, Fields fields, const std::string& tail);
  // A line as it is.
  void line(const std::string& text) { lines_.push_back(text); }
  // A declaration: const Weight NAME = function(...), of output 0.
  void weight_call(const std::string& function, const Fields& fields);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::string whole_numbers(int value) const;  // tensor() of what the libraries do not calculate with

  const compiler::Program& program_;
  const ValueNames& names_;
  const compiler::Step& step_;
  std::vector<std::string> lines_;
};

// "Type::int64"; empty: programs have no such.
std::string type_literal(graph::Type type);
// "relu()" of a post that is an activation.
std::string function_of(const compiler::PostOp& post);
// "Layout::blocked16"
std::string layout_literal(compiler::Layout layout, std::int64_t block);

}  // namespace strata::generate
