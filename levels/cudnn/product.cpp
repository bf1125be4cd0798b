// SPDX-License-Identifier: Apache-2.0
// Linear layers and matrix products, one call of cuBLAS each; the bias is a kernel of strata's behind it.
#include <algorithm>

#include "kit_cuda/kernels/elementwise.hpp"
#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Stream;

// The last two dimensions of `view`, or those before.
View last_two(const View& view, bool those_before) {
  View result{those_before ? view.rank - 2 : 2};
  const int from = those_before ? 0 : view.rank - 2;
  for (int d = 0; d < result.rank; ++d) {
    result.extents[d] = view.extents[from + d];
    result.strides[d] = view.strides[from + d];
  }
  return result;
}

// Whether cuBLAS can read its matrices: one dimension without gaps, rows that do not overlap.
bool is_readable(const View& view) {
  const View matrix = last_two(view, false);
  const auto [rows, columns] = std::pair(matrix.extents[0], matrix.extents[1]);
  const auto [row, column] = std::pair(matrix.strides[0], matrix.strides[1]);
  return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

Tensor readable(Builder& b, const Tensor& x) {
  return is_readable(x.view) ? x : b.plain(x);
}

void product_into(Builder& b, Tensor x, Tensor y, const Tensor& to) {
  if (to.view.count() == 0) return;
  const auto batches = [&] {
    return kit_cuda::walk<3>({last_two(x.view, true), last_two(y.view, true), last_two(to.view, true)});
  };
  auto batch = batches();
  if (batch.rank > 1) {  // one stride from matrix to matrix is all that the call knows
    Dims dims = to.dims();
    const auto whole = [&](const Tensor& operand) {
      dims[dims.size() - 2] = operand.dims()[dims.size() - 2];
      dims.back() = operand.dims().back();
      return b.plain(expanded(operand, dims));
    };
    x = whole(x);
    y = whole(y);
    batch = batches();
  }
  x = b.operand(x);
  y = b.operand(y);
  batch = batches();
  const auto operand = [&](const Tensor& tensor, int n) -> ProductCall::Operand {
    const View matrix = last_two(tensor.view, false);
    return {.data = tensor.begin(),
            .batch_stride = batch.rank == 0 ? 0 : batch.strides[n][0],
            .row_stride = matrix.strides[0],
            .column_stride = matrix.strides[1]};
  };
  const View left = last_two(x.view, false), result = last_two(to.view, false);
  b.call(b.calls().product({.batch = batch.count,
                            .rows = result.extents[0],
                            .columns = result.extents[1],
                            .inner = left.extents[1],
                            .left = operand(x, 0),
                            .right = operand(y, 1),
                            .to = to.data(),
                            .bfloat16 = b.rounds()}),
         x.view, to.view);
}

void linear(Builder& b) {
  const Tensor input = b.tensor("input"), weight = readable(b, b.tensor("weight"));
  if (weight.view.rank != 2) throw Unsupported("a linear layer whose weight is no matrix");
  const auto inputs = weight.dims()[1], outputs = weight.dims()[0];
  const auto rows = inputs == 0 ? 0 : input.view.count() / inputs;
  const Tensor source = readable(b, b.reshaped(input, {rows, inputs}));
  const Tensor to = b.result(row_major({rows, outputs}));
  product_into(b, source, permuted(weight, {1, 0}), to);
  const auto bias = b.optional("bias");
  if (!bias) return;
  b.own([=, shift = bias->data()](
            Stream stream) { kit_cuda::scale_shift(stream, to.source(), nullptr, shift, to.target()); },
        to.view, to.view);
}

// With ones in front up to `rank`, and of a vector a matrix.
Tensor matrix_of(Builder& b, const Tensor& tensor, std::size_t rank, bool is_left) {
  Dims dims = tensor.dims();
  if (dims.size() == 1) dims.insert(is_left ? dims.begin() : dims.end(), 1);
  if (dims.size() < rank) dims.insert(dims.begin(), rank - dims.size(), 1);
  return b.reshaped(tensor, dims);
}

void matmul(Builder& b) {
  const Tensor x = b.tensor(b.has("self") ? "self" : "input"), y = b.tensor(b.has("mat2") ? "mat2" : "other");
  const auto rank = std::max({x.dims().size(), y.dims().size(), std::size_t{2}});
  b.is(b.reshaped(multiply(b, matrix_of(b, x, rank, true), matrix_of(b, y, rank, false)), b.shape()));
}

}  // namespace

Tensor multiply(Builder& b, const Tensor& x, const Tensor& y) {
  const Tensor left = readable(b, x), right = readable(b, y);
  Dims dims = left.dims();
  dims.back() = right.dims().back();
  for (std::size_t i = 0; i + 2 < dims.size(); ++i) dims[i] = std::max(dims[i], right.dims()[i]);
  const Tensor to = b.temporary(row_major(dims));
  product_into(b, left, right, to);
  return to;
}

void add_products(Operations& table) {
  table["linear"] = linear;
  table["matmul"] = table["mm"] = table["bmm"] = matmul;
}

}  // namespace strata::cudnn
