// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention as the calls of which it consists: scale the queries, a product, add the mask, softmax,
// a product.
#include <cmath>
#include <limits>

#include "kit_cuda/kernels/softmax.hpp"
#include "operations.hpp"

namespace strata::cudnn {
namespace {

Tensor causal_mask(Builder& b, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns), 0.0F);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = r + 1; c < columns; ++c)
      values[static_cast<std::size_t>(r * columns + c)] = -std::numeric_limits<float>::infinity();
  return b.constant({rows, columns}, values);
}

void attention(Builder& b) {
  const Tensor query = b.tensor("query"), key = b.tensor("key"), value = b.tensor("value");
  if (b.number("dropout_p") != 0) throw Unsupported("attention with dropout");
  if (b.has("enable_gqa") && b.flag("enable_gqa")) throw Unsupported("attention with grouped queries");
  const auto rank = query.dims().size();
  const double scale = b.has("scale") ? b.number("scale") : 1 / std::sqrt(static_cast<double>(query.dims().back()));
  std::vector<std::size_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = i;
  std::swap(order[rank - 1], order[rank - 2]);

  Tensor scores = multiply(b, along_line(b, query, scale, 0), permuted(key, order));
  const Dims shape = scores.dims();
  if (b.flag("is_causal")) scores = sum_of(b, scores, causal_mask(b, shape[rank - 2], shape[rank - 1]));
  if (const auto mask = b.optional("attn_mask")) scores = sum_of(b, scores, *mask);
  const Tensor weights = b.temporary(scores.view);
  b.own(
      [=](kit_cuda::Stream stream) {
        kit_cuda::softmax(stream, scores.source(), static_cast<int>(rank) - 1, false, weights.target());
      },
      scores.view, weights.view);
  b.is(multiply(b, weights, value));
}

}  // namespace

void add_attention(Operations& table) {
  table["scaled_dot_product_attention"] = attention;
}

}  // namespace strata::cudnn
