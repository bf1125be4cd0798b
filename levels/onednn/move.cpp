// SPDX-License-Identifier: Apache-2.0
// Operations that put values elsewhere: rolls, gradients of lookups. Reorders into parts of the result, or copies.
#include <algorithm>

#include "call.hpp"
#include "operations.hpp"

namespace strata::onednn {
namespace {

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
    Tensor from = x, at = to;
    for (std::size_t i = 0; i < over.size(); ++i) {
      const auto d = static_cast<std::size_t>(over[i]);
      const bool wraps = (piece >> i & 1) != 0;
      const auto rest = dims[d] - shifts[i], length = wraps ? shifts[i] : rest;
      from = part_of(from, d, wraps ? rest : 0, length);
      at = part_of(at, d, wraps ? 0 : shifts[i], length);
    }
    if (product(from.dims()) > 0) b.move(from, at);
  }
  b.is(to);
}

void zero(Builder& b) {
  b.is(b.constant(b.shape(), std::vector<float>(static_cast<std::size_t>(product(b.shape())), 0.0F)));
}

void one(Builder& b) {
  b.is(b.constant(b.shape(), std::vector<float>(static_cast<std::size_t>(product(b.shape())), 1.0F)));
}

// The reverse of a lookup: each row is added to the table's row that its number means.
void embedding_backward(Builder& b) {
  const Tensor gradient = b.plain(b.tensor("grad_output")), numbers = b.rows("indices"),
               to = b.result(row_major(b.shape()));
  const auto table = b.handle(to);
  b.own("rows of a table", [from = b.handle(gradient), table, rows = Rows(table, b.handle(numbers))] {
    const auto* row = static_cast<const float*>(from.get_data_handle());
    auto* into = static_cast<float*>(table.get_data_handle());
    std::fill_n(into, rows.elements(), 0.0F);
    for (std::int64_t i = 0; i < rows.count(); ++i, row += rows.width()) {
      auto* sums = into + rows.first_of(i);
      for (std::int64_t k = 0; k < rows.width(); ++k) sums[k] += row[k];
    }
  });
}

}  // namespace

void add_moves(Operations& table) {
  table["roll"] = roll;
  table["zero"] = table["zeros_like"] = zero;
  table["ones_like"] = one;
  table["embedding_dense_backward"] = embedding_backward;
}

}  // namespace strata::onednn
