// SPDX-License-Identifier: Apache-2.0
// Operations that only say how to read a tensor: a view where strides can say it, else a copy.
#include <algorithm>

#include "operations.hpp"

namespace strata::cudnn {
namespace {

void reshape(Builder& b) {
  // of integers only lists are read, whatever their shape
  if (b.gives_integers()) return b.is(b.int64_tensor("self"));
  b.is(b.reshaped(b.tensor("self"), b.shape()));
}
void same(Builder& b) {
  b.is(b.tensor(b.is_tensor("self") ? "self" : "input"));
}

void dropout(Builder& b) {
  if (b.flag("train")) throw Unsupported("dropout in training mode");
  same(b);
}

void contiguous(Builder& b) {
  const auto format = b.text("memory_format");
  if (!format.empty() && format != "contiguous_format" && format != "preserve_format")
    throw Unsupported("the memory format " + format);
  b.is(b.plain(b.tensor("self")));
}

// Nothing here writes into a tensor, so that a copy in the same order is the tensor itself.
void clone(Builder& b) {
  if (b.text("memory_format") == "contiguous_format") return contiguous(b);
  same(b);
}

void permute(Builder& b) {
  const Tensor x = b.tensor("self");
  std::vector<std::size_t> order;
  for (const auto dim : b.integers("dims"))
    order.push_back(static_cast<std::size_t>(dim < 0 ? dim + x.view.rank : dim));
  b.is(permuted(x, order));
}

void exchange(Builder& b, std::size_t one, std::size_t other) {
  const Tensor x = b.tensor("self");
  std::vector<std::size_t> order(x.dims().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::swap(order.at(one), order.at(other));
  b.is(permuted(x, order));
}

void transpose(Builder& b) {
  const auto rank = b.tensor("self").dims().size();
  exchange(b, b.dimension("dim0", rank), b.dimension("dim1", rank));
}

void matrix_transpose(Builder& b) {
  if (b.tensor("self").dims().size() < 2) return same(b);
  exchange(b, 0, 1);
}

void expand(Builder& b) {
  b.is(expanded(b.tensor("self"), b.shape()));
}

void select(Builder& b) {
  const Tensor x = b.tensor("self");
  const auto dim = b.dimension("dim", x.dims().size());
  auto index = b.integer("index");
  if (index < 0) index += x.dims()[dim];
  Tensor one = part_of(x, dim, index, 1);
  if (one.view.rank > 1) one.view = kit_cuda::without(one.view, static_cast<int>(dim));
  b.is(one);
}

void slice(Builder& b) {
  const Tensor x = b.tensor("self");
  const auto dim = b.dimension("dim", x.dims().size());
  const auto extent = x.dims()[dim];
  auto begin = b.has("start") ? b.integer("start") : 0;
  if (begin < 0) begin += extent;
  b.is(part_of(x, dim, std::clamp<Index>(begin, 0, extent), b.shape()[dim], b.integer("step")));
}

// chunk, split, unbind: parts one behind the other along a dimension, as their shapes say.
void divide(Builder& b) {
  const Tensor x = b.tensor("self");
  const auto dim = b.dimension("dim", x.dims().size());
  Index begin = 0;
  for (std::size_t i = 0; i < b.outputs(); ++i) {
    const Dims dims = b.shape(i);
    const bool keeps = dims.size() == x.dims().size() && b.operation() != "unbind";
    const auto length = keeps ? dims[dim] : 1;
    const Tensor part = part_of(x, dim, begin, length);
    b.is(keeps ? part : b.reshaped(part, dims), i);
    begin += length;
  }
}

}  // namespace

void add_shapes(Operations& table) {
  for (const char* name : {"view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"})
    table[name] = reshape;
  for (const char* name : {"alias", "detach", "lift_fresh_copy"}) table[name] = same;
  for (const char* name : {"dropout", "feature_dropout", "alpha_dropout"}) table[name] = dropout;
  for (const char* name : {"chunk", "split", "split_with_sizes", "unbind"}) table[name] = divide;
  table["contiguous"] = contiguous;
  table["clone"] = clone;
  table["permute"] = permute;
  table["transpose"] = transpose;
  table["t"] = matrix_transpose;
  table["expand"] = table["expand_as"] = expand;
  table["select"] = select;
  table["slice"] = slice;
}

}  // namespace strata::cudnn
