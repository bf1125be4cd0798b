// SPDX-License-Identifier: Apache-2.0
// Operations that only say how to read a tensor. They cost nothing where oneDNN's layout allows, else a reorder.
#include <algorithm>

#include "operations.hpp"

namespace strata::onednn {
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
  const auto rank = static_cast<std::int64_t>(b.tensor("self").dims().size());
  std::vector<std::size_t> order;
  for (const auto dim : b.integers("dims")) order.push_back(static_cast<std::size_t>(dim < 0 ? dim + rank : dim));
  b.is(permuted(b.tensor("self"), order));
}

void exchange(Builder& b, std::size_t one, std::size_t other) {
  std::vector<std::size_t> order(b.tensor("self").dims().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::swap(order.at(one), order.at(other));
  b.is(permuted(b.tensor("self"), order));
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
  const Dims dims = b.shape();
  Tensor x = b.tensor("self");
  Dims own = x.dims();
  own.insert(own.begin(), dims.size() - own.size(), 1);
  x = b.reshaped(x, own);
  if (own == dims) return b.is(x);
  x = b.strided(x);
  Dims strides = x.desc.get_strides();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (own[i] != dims[i]) strides[i] = 0;
  x.desc = memory::desc(dims, x.desc.get_data_type(), strides);
  b.is(b.written_out(x));
}

// Part `i` of the outputs: `length` from `begin` on along a dimension, in steps.
Tensor slice_of(Builder& b, const Tensor& x, std::size_t dim, std::int64_t begin, std::int64_t length,
                std::int64_t step) {
  Dims dims = x.dims(), strides = x.desc.get_strides();
  const auto offset = begin * strides[dim];
  dims[dim] = length;
  strides[dim] *= step;
  return b.part(x, memory::desc(dims, x.desc.get_data_type(), strides), offset);
}

void select(Builder& b) {
  const Tensor x = b.strided(b.tensor("self"));
  const auto dim = b.dimension("dim", x.dims().size());
  auto index = b.integer("index");
  if (index < 0) index += x.dims()[dim];
  Tensor one = slice_of(b, x, dim, index, 1, 1);
  Dims dims = one.dims(), strides = one.desc.get_strides();
  if (dims.size() > 1) {
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
    one.desc = memory::desc(dims, one.desc.get_data_type(), strides);
  }
  b.is(one);
}

void slice(Builder& b) {
  const Tensor x = b.strided(b.tensor("self"));
  const auto dim = b.dimension("dim", x.dims().size());
  const auto extent = x.dims()[dim];
  auto begin = b.has("start") ? b.integer("start") : 0;
  if (begin < 0) begin += extent;
  b.is(slice_of(b, x, dim, std::clamp<std::int64_t>(begin, 0, extent), b.shape()[dim], b.integer("step")));
}

// chunk, split, unbind: parts one behind the other along a dimension, as their shapes say.
void divide(Builder& b) {
  const Tensor x = b.strided(b.tensor("self"));
  const auto dim = b.dimension("dim", x.dims().size());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < b.outputs(); ++i) {
    const Dims dims = b.shape(i);
    const bool keeps = dims.size() == x.dims().size() && b.operation() != "unbind";
    const auto length = keeps ? dims[dim] : 1;
    const Tensor part = slice_of(b, x, dim, begin, length, 1);
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

}  // namespace strata::onednn
