// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention as the calls of which it consists: scale the queries, a product, add the mask, softmax,
// a product.
#include <cmath>
#include <limits>

#include "operations.hpp"

namespace strata::onednn {
namespace {

Tensor causal_mask(Builder& b, std::int64_t rows, std::int64_t columns, std::size_t rank) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns), 0.0F);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = r + 1; c < columns; ++c)
      values[static_cast<std::size_t>(r * columns + c)] = -std::numeric_limits<float>::infinity();
  Dims dims(rank, 1);
  dims[rank - 2] = rows;
  dims[rank - 1] = columns;
  return b.constant(dims, values);
}

void attention(Builder& b) {
  const Tensor query = b.tensor("query"), key = b.tensor("key"), value = b.strided(b.tensor("value"));
  if (b.number("dropout_p") != 0) throw Unsupported("attention with dropout");
  if (b.has("enable_gqa") && b.flag("enable_gqa")) throw Unsupported("attention with grouped queries");
  const auto rank = query.dims().size();
  const double scale = b.has("scale") ? b.number("scale") : 1 / std::sqrt(static_cast<double>(query.dims().back()));
  Tensor turned = b.strided(key);
  Dims dims = turned.dims(), strides = turned.desc.get_strides();
  std::swap(dims[rank - 1], dims[rank - 2]);
  std::swap(strides[rank - 1], strides[rank - 2]);
  turned.desc = memory::desc(dims, memory::data_type::f32, strides);

  Tensor scores =
      multiply(b, applied(b, dnnl::algorithm::eltwise_linear, query, static_cast<float>(scale)), turned, false);
  const Dims shape = scores.dims();
  std::optional<Tensor> mask = b.optional("attn_mask");
  if (b.flag("is_causal")) mask = causal_mask(b, shape[rank - 2], shape[rank - 1], rank);
  if (mask) {
    Dims of_mask = mask->dims();
    of_mask.insert(of_mask.begin(), rank - of_mask.size(), 1);
    const Tensor shift = b.plain(b.reshaped(*mask, of_mask)), sum = b.temporary(scores.desc);
    const dnnl::binary::primitive_desc pd(b.engine(), dnnl::algorithm::binary_add, scores.desc, shift.desc, scores.desc,
                                          Builder::attr());
    b.call<dnnl::binary>(pd, {{DNNL_ARG_SRC_0, scores}, {DNNL_ARG_SRC_1, shift}, {DNNL_ARG_DST, sum}});
    scores = sum;
  }
  const Tensor weights = b.temporary(scores.desc);
  const dnnl::softmax_forward::primitive_desc pd(b.engine(), dnnl::prop_kind::forward_inference,
                                                 dnnl::algorithm::softmax_accurate, scores.desc, scores.desc,
                                                 static_cast<int>(rank) - 1, Builder::attr());
  b.call<dnnl::softmax_forward>(pd, {{DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, weights}});
  multiply(b, weights, value, true);
}

}  // namespace

void add_attention(Operations& table) {
  table["scaled_dot_product_attention"] = attention;
}

}  // namespace strata::onednn
