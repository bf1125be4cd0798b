// SPDX-License-Identifier: Apache-2.0
// Operations that put values elsewhere: rolls, lookups by rows; tensors of one value.
#include "kit_cuda/kernels/move.hpp"

#include <fmt/format.h>

#include <array>

#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Stream;

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

// Where a lookup by `rows` says that it met a number that no row of a table of `height` has.
Index* fault_of(Builder& b, const Tensor& rows, Index height) {
  return b.library().fault(
      rows, [height](std::int64_t row) { return fmt::format("a lookup of row {} in a table of {}", row, height); });
}

void look_up(Builder& b, const Tensor& table_operand, const Tensor& rows) {
  const Tensor table = b.plain(table_operand), to = b.result(row_major(b.shape()));
  const auto height = table.dims().front(), count = rows.view.count();
  const auto length = height == 0 ? 0 : table.view.count() / height;
  b.own(
      [=, fault = fault_of(b, rows, height)](Stream stream) {
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

void embedding_backward(Builder& b) {
  const Tensor from = b.plain(b.tensor("grad_output")), rows = b.rows("indices"), to = b.result(row_major(b.shape()));
  const auto height = to.dims()[0], length = to.dims()[1], count = rows.view.count();
  b.own(
      [=, fault = fault_of(b, rows, height)](Stream stream) {
        kit_cuda::add_rows(stream, from.data(), rows.int64_data(), count, to.data(), height, length, fault);
      },
      from.view, to.view);
}

}  // namespace

void add_moves(Operations& table) {
  table["roll"] = roll;
  table["zero"] = table["zeros_like"] = zero;
  table["ones_like"] = one;
  table["index"] = index;
  table["embedding"] = embedding;
  table["embedding_dense_backward"] = embedding_backward;
}

}  // namespace strata::cudnn
