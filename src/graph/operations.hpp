// SPDX-License-Identifier: Apache-2.0
// What strata knows of each ATen operation: what its outputs look like, how much work it is, whether it is only another
// view of its input. One table; each family of operations is a file in operations/. How an operation is computed is
// known to levels and to the generator, not here.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace strata::graph {

struct Described {
  Type type = Type::float32;
  Shape shape;
  bool operator==(const Described&) const = default;
};

// The node's inputs or arguments do not fit the operation's rule. Says why; check() adds where.
class ShapeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A node of a graph, with its tensors looked up. Borrowed: both must outlive it.
class Call {
 public:
  Call(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}
  const Node& node() const { return node_; }
  const Value& in(std::string_view arg) const { return graph_.value(node_.tensor(arg)); }
  const Value* maybe_in(std::string_view arg) const;          // nullptr: null, or the operation has no such argument
  const Value& self() const;                                  // the tensor that ATen calls `self` or `input`
  std::vector<const Value*> all(std::string_view arg) const;  // a list of tensors; nullptr: left out
  const Value& out(std::size_t index = 0) const { return graph_.value(node_.outputs.at(index)); }

 private:
  const Graph& graph_;
  const Node& node_;
};

// reshape: the same elements in the same row-major order. strided: a part or another order of them, which strides
// express.
enum class Aliasing : std::uint8_t { none, reshape, strided };

using OutputRule = std::vector<Described> (*)(const Call&);  // throws ShapeError and ArgumentError
using Count = std::int64_t (*)(const Call&);                 // saturates at the largest int64

struct Operation {
  std::string_view name;  // "conv2d", as Node::operation()
  OutputRule outputs = nullptr;
  Count flops = nullptr;  // nullptr: none; what is counted, flops.hpp says
  Aliasing aliasing = Aliasing::none;
  Count bytes_read = nullptr;  // nullptr: every tensor argument once
};

// nullptr: strata does not know this operation.
const Operation* find_operation(std::string_view name);
std::vector<std::string_view> known_operations();  // sorted

}  // namespace strata::graph
