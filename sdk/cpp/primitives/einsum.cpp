// SPDX-License-Identifier: Apache-2.0
#include "primitives/einsum.hpp"

#include "graph/einsum.hpp"

namespace strata::primitives {
namespace {

Dims joined(Dims dims, const Dims& more) {
  dims.insert(dims.end(), more.begin(), more.end());
  return dims;
}

}  // namespace

Einsum einsum_of(const std::string& equation, const Dims& of_left, const Dims& of_right) {
  const auto labels = graph::matrix_einsum(equation);
  if (!labels) throw Unsupported("einsum '" + equation + "', which is no product of two tensors' matrices");
  const auto& [left, right, result, batch, rows, columns, summed] = *labels;
  if (of_left.size() != left.size() || of_right.size() != right.size())
    throw Unsupported("einsum whose tensors do not fit its labels");
  const auto extents = [](const Dims& dims, const std::string& of, const std::string& axes) {
    Dims chosen;
    for (const auto i : graph::places_of(axes, of)) chosen.push_back(dims[i]);
    return chosen;
  };
  const Dims in_batch = extents(of_left, left, batch), in_rows = extents(of_left, left, rows),
             in_columns = extents(of_right, right, columns);
  const auto inner = product(extents(of_left, left, summed));
  return {.left = graph::places_of(batch + rows + summed, left),
          .right = graph::places_of(batch + summed + columns, right),
          .of_left = joined(in_batch, {product(in_rows), inner}),
          .of_right = joined(in_batch, {inner, product(in_columns)}),
          .of_product = joined(joined(in_batch, in_rows), in_columns),
          .result = graph::places_of(result, batch + rows + columns)};
}

}  // namespace strata::primitives
