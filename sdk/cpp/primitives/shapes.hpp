// SPDX-License-Identifier: Apache-2.0
// Operations that only say how to read a tensor, and those that put a tensor into a part of another: the same for every
// library, in terms of its Builder and its Tensor. What costs nothing in one library's layouts may be a copy in
// another's; that is for these to decide:
//   Builder   tensor(argument), shape(i), is(tensor, i), plain(tensor), strided(tensor), reshaped(tensor, dims),
//             expanded(tensor, dims), filled_like(dims, tensor, value), temporary_like(tensor), move(from, to),
//             sliced(tensor, dim, slice), move_into(part, tensor, dim, slice)
//   Tensor    dims(), permuted(tensor, order), part_of(tensor, dim, begin, length, step), without(tensor, dim)
#pragma once

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "primitives/arguments.hpp"

namespace strata::primitives {

template <class Builder>
struct Shapes {
  using Make = void (*)(Builder&);

  static void add_to(std::map<std::string_view, Make>& table) {
    for (const char* name : {"view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"})
      table[name] = reshape;
    for (const char* name : {"alias", "detach", "lift_fresh_copy"}) table[name] = same;
    for (const char* name : {"dropout", "feature_dropout", "alpha_dropout"}) table[name] = dropout;
    for (const char* name : {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"}) table[name] = divide;
    table["contiguous"] = contiguous;
    table["clone"] = clone;
    table["permute"] = permute;
    table["transpose"] = transpose;
    table["t"] = matrix_transpose;
    table["expand"] = table["expand_as"] = expand;
    table["select"] = select;
    table["slice"] = slice;
    table["pad"] = table["constant_pad_nd"] = pad;
    table["slice_scatter"] = slice_scatter;
    table["slice_backward"] = slice_backward;
    table["select_backward"] = select_backward;
  }

 private:
  static void reshape(Builder& b) {
    // of integers a library may read lists alone, whatever their shape
    if constexpr (requires { b.int64_tensor("self"); })
      if (b.gives_integers()) return b.is(b.int64_tensor("self"));
    b.is(b.reshaped(b.tensor("self"), b.shape()));
  }
  static void same(Builder& b) { b.is(b.tensor(b.is_tensor("self") ? "self" : "input")); }

  static void dropout(Builder& b) {
    if (b.flag("train")) throw Unsupported("dropout in training mode");
    same(b);
  }

  static void contiguous(Builder& b) {
    const auto format = b.text("memory_format");
    if (!format.empty() && format != "contiguous_format" && format != "preserve_format")
      throw Unsupported("the memory format " + format);
    b.is(b.plain(b.tensor("self")));
  }

  // Nothing here writes into a tensor, so that a copy in the same order is the tensor itself.
  static void clone(Builder& b) {
    if (b.text("memory_format") == "contiguous_format") return contiguous(b);
    same(b);
  }

  static void permute(Builder& b) {
    const auto x = b.tensor("self");
    const auto rank = static_cast<std::int64_t>(x.dims().size());
    std::vector<std::size_t> order;
    for (const auto dim : b.integers("dims")) order.push_back(static_cast<std::size_t>(dim < 0 ? dim + rank : dim));
    b.is(permuted(x, order));
  }

  static void exchange(Builder& b, std::size_t first, std::size_t second) {
    const auto x = b.tensor("self");
    std::vector<std::size_t> order(x.dims().size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::swap(order.at(first), order.at(second));
    b.is(permuted(x, order));
  }
  static void transpose(Builder& b) {
    const auto rank = b.tensor("self").dims().size();
    exchange(b, b.dimension("dim0", rank), b.dimension("dim1", rank));
  }
  static void matrix_transpose(Builder& b) {
    if (b.tensor("self").dims().size() < 2) return same(b);
    exchange(b, 0, 1);
  }

  static void expand(Builder& b) { b.is(b.expanded(b.tensor("self"), b.shape())); }

  // Counted from the front, and inside.
  static std::int64_t start_of(Builder& b, std::int64_t extent) {
    auto start = b.has("start") ? b.integer("start") : 0;
    if (start < 0) start += extent;
    return std::clamp<std::int64_t>(start, 0, extent);
  }
  static std::int64_t index_of(Builder& b, std::int64_t extent) {
    const auto index = b.integer("index");
    return index < 0 ? index + extent : index;
  }

  static void select(Builder& b) {
    const auto x = b.strided(b.tensor("self"));
    const auto dim = b.dimension("dim", x.dims().size());
    b.is(without(part_of(x, dim, index_of(b, x.dims()[dim]), 1), dim));
  }

  static void slice(Builder& b) {
    const auto x = b.strided(b.tensor("self"));
    const auto dim = b.dimension("dim", x.dims().size());
    b.is(b.sliced(x, dim, {start_of(b, x.dims()[dim]), b.shape()[dim], b.integer("step")}));
  }

  // chunk, split, unbind: parts one behind the other along a dimension, as their shapes say.
  static void divide(Builder& b) {
    const auto x = b.strided(b.tensor("self"));
    const auto dim = b.dimension("dim", x.dims().size());
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < b.outputs(); ++i) {
      const Dims dims = b.shape(i);
      const bool keeps = dims.size() == x.dims().size() && b.operation() != "unbind";
      const auto length = keeps ? dims[dim] : 1;
      const auto part = part_of(x, dim, begin, length);
      b.is(keeps ? part : b.reshaped(part, dims), i);
      begin += length;
    }
  }

  static void pad(Builder& b) {
    if (const auto mode = b.text("mode"); !mode.empty() && mode != "constant")
      throw Unsupported("padding in the mode " + mode);
    const Dims widths = b.integers("pad"), dims = b.shape();
    if (std::any_of(widths.begin(), widths.end(), [](auto width) { return width < 0; }))
      throw Unsupported("negative padding");
    const auto x = b.tensor("self");
    // the frame is written once: no call touches it again
    const auto to = b.filled_like(dims, x, static_cast<float>(b.has("value") ? b.number("value") : 0));
    auto inner = to;
    for (std::size_t i = 0; i < widths.size() / 2; ++i) {
      const auto d = dims.size() - 1 - i;
      inner = part_of(inner, d, widths[2 * i], x.dims()[d]);
    }
    b.move(x, inner);
    b.is(to);
  }

  // The tensor with a slice of it replaced: both are moved in every run, the slice last.
  static void slice_scatter(Builder& b) {
    const auto whole = b.tensor("self"), part = b.tensor("src"), to = b.temporary_like(whole);
    const auto dim = b.dimension("dim", whole.dims().size());
    b.move(whole, to);
    b.move_into(part, to, dim, {start_of(b, whole.dims()[dim]), part.dims()[dim], b.integer("step")});
    b.is(to);
  }

  // Gradients in their places among zeros, which are written once.
  static void slice_backward(Builder& b) {
    const Dims dims = b.shape();
    const auto part = b.tensor("grad_output"), to = b.filled_like(dims, part, 0);
    const auto dim = b.dimension("dim", dims.size());
    b.move_into(part, to, dim, {start_of(b, dims[dim]), part.dims()[dim], b.integer("step")});
    b.is(to);
  }

  static void select_backward(Builder& b) {
    Dims dims = b.shape();
    const auto dim = b.dimension("dim", dims.size());
    const auto index = index_of(b, dims[dim]);
    Dims of_part = dims;
    of_part[dim] = 1;
    const auto part = b.reshaped(b.tensor("grad_output"), of_part), to = b.filled_like(dims, part, 0);
    b.move(part, part_of(to, dim, index, 1));
    b.is(to);
  }
};

}  // namespace strata::primitives
