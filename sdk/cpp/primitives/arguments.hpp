// SPDX-License-Identifier: Apache-2.0
// The arguments of one node by ATen's names, as those read them who make calls of a library for it. Anything that
// cannot be done is thrown as Unsupported.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace strata::primitives {

using Dims = std::vector<std::int64_t>;

std::int64_t product(const Dims& dims);

// An operation, or a case of one, that cannot be run here; `what()` says which, without its place in the model.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Windows of a convolution or pooling along its spatial dimensions; dilation as PyTorch counts it: 1 is none.
struct Window {
  Dims kernel, stride, dilation, before, after;
  bool exact = true;  // of a pooling: no window begins or ends beyond the padding that was asked for
};

// Of a dimension: `length` elements from `begin` on, in steps.
struct Slice {
  std::int64_t begin = 0, length = 0, step = 1;
};

class Arguments {
 public:
  Arguments(const graph::Graph& graph, const graph::Node& node)
      : graph_(graph), node_(node), operation_(node.operation()) {}

  // A tensor or number that is missing throws.
  std::string_view operation() const { return operation_; }
  bool has(std::string_view argument) const;        // given and not null
  bool is_tensor(std::string_view argument) const;  // and not a number
  bool gives_integers() const;                      // output 0 is int64
  bool trains() const { return graph_.mode == graph::Mode::train; }
  std::int64_t integer(std::string_view argument) const { return node_.integer(argument); }
  double number(std::string_view argument) const { return node_.number(argument); }
  bool flag(std::string_view argument) const { return node_.flag(argument); }
  std::vector<bool> flags(std::string_view argument) const;
  std::string text(std::string_view argument) const;  // empty: it is no text
  // Exactly `count` integers, or one for all of them.
  Dims integers(std::string_view argument, std::size_t count) const;
  Dims integers(std::string_view argument) const { return node_.ints(argument); }
  // A dimension, counted from the front.
  std::size_t dimension(std::string_view argument, std::size_t rank) const;
  // Those that a reduction names; all of them where it names none.
  std::vector<std::size_t> reduced_dimensions(std::size_t rank) const;
  // Of a convolution whose weight has these extents.
  Window convolution_window(const Dims& weight) const;
  // Of a node with kernel_size, stride, padding and perhaps dilation; `in` and `out` are the shapes on both sides.
  Window pooling_window(const Dims& in, const Dims& out, std::size_t rank) const;
  // Shape of output `i`, which is float32; {1} for a scalar.
  Dims shape(std::size_t i = 0) const;
  std::size_t outputs() const { return node_.outputs.size(); }
  int first_output() const { return node_.outputs.at(0); }  // a number that no other node has
  // Whether output `i` is read by another node.
  bool is_read(std::size_t i) const { return !graph_.value(node_.outputs.at(i)).consumers.empty(); }

 protected:
  // The values of a list of tensors, of which none is left out; the only one of a list, for the first dimension.
  std::vector<int> values(std::string_view argument) const;
  int only_value(std::string_view argument) const;

  const graph::Graph& graph_;
  const graph::Node& node_;

 private:
  std::string operation_;
};

}  // namespace strata::primitives
