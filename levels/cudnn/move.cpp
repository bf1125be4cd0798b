// SPDX-License-Identifier: Apache-2.0
// Operations that put values elsewhere: padding, rolls, parts of zeros, lookups by rows.
#include "kit_cuda/kernels/move.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Stream;

void pad(Builder& b) {
  if (const auto mode = b.text("mode"); !mode.empty() && mode != "constant")
    throw Unsupported("padding in the mode " + mode);
  const Dims widths = b.integers("pad"), dims = b.shape();
  if (std::any_of(widths.begin(), widths.end(), [](auto width) { return width < 0; }))
    throw Unsupported("negative padding");
  const Tensor x = b.tensor("self");
  // the frame is written once: no call touches it again
  const Tensor to =
      b.filled(Builder::view_like(dims, x.view), static_cast<float>(b.has("value") ? b.number("value") : 0));
  Tensor inner = to;
  for (std::size_t i = 0; i < widths.size() / 2; ++i) {
    const auto d = dims.size() - 1 - i;
    inner = part_of(inner, d, widths[2 * i], x.dims()[d]);
  }
  b.move(x, inner);
  b.is(to);
}

void roll(Builder& b) {
  const Dims shifts = b.integers("shifts"), over = b.integers("dims");
  if (shifts.size() != over.size()) throw Unsupported("a roll of the flattened tensor");
  const Tensor x = b.tensor("self"), y = b.result_like(x);
  std::array<Index, kit_cuda::most_dims> by{};
  for (std::size_t i = 0; i < over.size(); ++i)
    by.at(static_cast<std::size_t>(over[i] < 0 ? over[i] + x.view.rank : over[i])) += shifts[i];
  b.own([=](Stream stream) { kit_cuda::roll(stream, x.source(), by.data(), y.target()); }, x.view, y.view);
}

void zero(Builder& b) {
  b.is(b.filled(row_major(b.shape()), 0));
}
void one(Builder& b) {
  b.is(b.filled(row_major(b.shape()), 1));
}

// Counted from the front, and inside.
Index start_of(Builder& b, Index extent) {
  auto start = b.has("start") ? b.integer("start") : 0;
  if (start < 0) start += extent;
  return std::clamp<Index>(start, 0, extent);
}

// The tensor with a slice of it replaced: both are moved in every run, the slice last.
void slice_scatter(Builder& b) {
  const Tensor whole = b.tensor("self"), part = b.tensor("src"), to = b.result_like(whole);
  const auto dim = b.dimension("dim", whole.dims().size());
  b.move(whole, to);
  b.move(part, part_of(to, dim, start_of(b, whole.dims()[dim]), part.dims()[dim], b.integer("step")));
}

// A gradient in its place among zeros, which are written once.
void slice_backward(Builder& b) {
  const Dims dims = b.shape();
  const Tensor part = b.tensor("grad_output"), to = b.filled(Builder::view_like(dims, part.view), 0);
  const auto dim = b.dimension("dim", dims.size());
  b.move(part, part_of(to, dim, start_of(b, dims[dim]), part.dims()[dim], b.integer("step")));
  b.is(to);
}

void select_backward(Builder& b) {
  Dims dims = b.shape();
  const Tensor to = b.filled(row_major(dims), 0);
  const auto dim = b.dimension("dim", dims.size());
  auto index = b.integer("index");
  if (index < 0) index += dims[dim];
  dims[dim] = 1;
  b.move(b.reshaped(b.tensor("grad_output"), dims), part_of(to, dim, index, 1));
  b.is(to);
}

void look_up(Builder& b, const Tensor& given, const Tensor& rows) {
  const Tensor table = b.plain(given), to = b.result(row_major(b.shape()));
  const auto height = table.dims().front(), count = rows.view.count();
  const auto length = height == 0 ? 0 : table.view.count() / height;
  auto* fault = b.library().fault(
      rows, [height](std::int64_t row) { return fmt::format("a lookup of row {} in a table of {}", row, height); });
  b.own(
      [=](Stream stream) {
        kit_cuda::look_up(stream, table.data(), height, length, rows.int64_data(), count, to.data(), fault);
      },
      table.view, to.view);
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

}  // namespace strata::cudnn
