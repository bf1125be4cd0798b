// SPDX-License-Identifier: Apache-2.0
// Operations that put values elsewhere: padding, rolls, lookups by rows. Reorders into parts of the result, or copies.
#include <algorithm>

#include "call.hpp"
#include "operations.hpp"

namespace strata::onednn {
namespace {

// `tensor` (row-major) from `begin` on, `length` long, in every dimension.
Tensor box(Builder& b, const Tensor& tensor, const Dims& begin, const Dims& length) {
  const Dims strides = tensor.desc.get_strides();
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < begin.size(); ++i) offset += begin[i] * strides[i];
  return b.part(tensor, memory::desc(length, memory::data_type::f32, strides), offset);
}

void pad(Builder& b) {
  if (const auto mode = b.text("mode"); !mode.empty() && mode != "constant")
    throw Unsupported("padding in the mode " + mode);
  const Dims widths = b.integers("pad"), dims = b.shape();
  if (std::any_of(widths.begin(), widths.end(), [](auto width) { return width < 0; }))
    throw Unsupported("negative padding");
  const Tensor x = b.tensor("self");
  Dims begin(dims.size(), 0);
  for (std::size_t i = 0; i < widths.size() / 2; ++i) begin[dims.size() - 1 - i] = widths[2 * i];
  const auto value = static_cast<float>(b.has("value") ? b.number("value") : 0);
  // the frame is written once: no call touches it again
  const Tensor to = b.constant(dims, std::vector<float>(static_cast<std::size_t>(product(dims)), value));
  const Dims inner = x.dims();
  b.move(x.elsewhere() ? b.plain(x) : x, box(b, to, begin, inner));
  b.is(to);
}

void roll(Builder& b) {
  Dims shifts = b.integers("shifts"), over = b.integers("dims");
  if (shifts.size() != over.size()) throw Unsupported("a roll of the flattened tensor");
  const Tensor x = b.plain(b.tensor("self"));
  const Dims dims = x.dims();
  const Tensor to = b.temporary(row_major(dims));
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i] < 0) over[i] += static_cast<std::int64_t>(dims.size());
    const auto extent = std::max<std::int64_t>(dims.at(static_cast<std::size_t>(over[i])), 1);
    shifts[i] = (shifts[i] % extent + extent) % extent;
  }
  // each rolled dimension falls into two pieces
  for (std::size_t piece = 0; piece < (std::size_t{1} << over.size()); ++piece) {
    Dims from(dims.size(), 0), at(dims.size(), 0), length = dims;
    for (std::size_t i = 0; i < over.size(); ++i) {
      const auto d = static_cast<std::size_t>(over[i]);
      const bool wraps = (piece >> i & 1) != 0;
      length[d] = wraps ? shifts[i] : dims[d] - shifts[i];
      from[d] = wraps ? dims[d] - shifts[i] : 0;
      at[d] = wraps ? 0 : shifts[i];
    }
    if (product(length) > 0) b.move(box(b, x, from, length), box(b, to, at, length));
  }
  b.is(to);
}

void zero(Builder& b) {
  b.is(b.constant(b.shape(), std::vector<float>(static_cast<std::size_t>(product(b.shape())), 0.0F)));
}

// The tensor with a slice of it replaced: both are moved in every run, the slice last.
void slice_scatter(Builder& b) {
  const Tensor whole = b.plain(b.tensor("self")), given = b.tensor("src");
  const Tensor part = given.elsewhere() ? b.plain(given) : given;
  const Dims dims = whole.dims();
  const auto dim = b.dimension("dim", dims.size());
  auto start = b.has("start") ? b.integer("start") : 0;
  if (start < 0) start += dims[dim];
  const Tensor to = b.temporary(row_major(dims));
  Dims strides = to.desc.get_strides();
  const auto offset = std::clamp<std::int64_t>(start, 0, dims[dim]) * strides[dim];
  strides[dim] *= b.integer("step");
  b.move(whole, to);
  b.move(part, b.part(to, memory::desc(part.dims(), memory::data_type::f32, strides), offset));
  b.is(to);
}

// A gradient in its place among zeros, which are written once.
void part_of_zeros(Builder& b, Tensor part, std::int64_t begin, std::int64_t step) {
  const Dims dims = b.shape();
  const Tensor to = b.constant(dims, std::vector<float>(static_cast<std::size_t>(product(dims)), 0.0F));
  const auto dim = b.dimension("dim", dims.size());
  Dims strides = to.desc.get_strides();
  const auto offset = begin * strides[dim];
  strides[dim] *= step;
  part = part.elsewhere() ? b.plain(part) : part;
  b.move(part, b.part(to, memory::desc(part.dims(), memory::data_type::f32, strides), offset));
  b.is(to);
}

void slice_backward(Builder& b) {
  const Dims dims = b.shape();
  const auto extent = dims[b.dimension("dim", dims.size())];
  auto begin = b.integer("start");
  if (begin < 0) begin += extent;
  part_of_zeros(b, b.tensor("grad_output"), std::clamp<std::int64_t>(begin, 0, extent), b.integer("step"));
}

void select_backward(Builder& b) {
  Dims dims = b.shape();
  const auto dim = b.dimension("dim", dims.size());
  auto index = b.integer("index");
  if (index < 0) index += dims[dim];
  dims[dim] = 1;
  part_of_zeros(b, b.reshaped(b.tensor("grad_output"), dims), index, 1);
}

void one(Builder& b) {
  b.is(b.constant(b.shape(), std::vector<float>(static_cast<std::size_t>(product(b.shape())), 1.0F)));
}

void look_up(Builder& b, const Tensor& table, const Tensor& rows) {
  const Tensor to = b.result(row_major(b.shape()));
  b.add(std::make_unique<Lookup>(b.handle(b.plain(table)), b.handle(rows), b.handle(to)));
}

void index(Builder& b) {
  look_up(b, b.tensor("self"), b.rows("indices"));
}
void embedding(Builder& b) {
  look_up(b, b.tensor("weight"), b.rows("indices"));
}

}  // namespace

void add_moves(Operations& table) {
  table["pad"] = table["constant_pad_nd"] = pad;
  table["roll"] = roll;
  table["slice_scatter"] = slice_scatter;
  table["zero"] = table["zeros_like"] = zero;
  table["ones_like"] = one;
  table["slice_backward"] = slice_backward;
  table["select_backward"] = select_backward;
  table["index"] = index;
  table["embedding"] = embedding;
}

}  // namespace strata::onednn
