// SPDX-License-Identifier: Apache-2.0
// Batch norm with given statistics, or with the batch's own, as a call of its own, and layer norm.
#include "operations.hpp"

namespace strata::onednn {
namespace {

void batch_norm(Builder& b) {
  const bool fixed_statistics = b.has("running_mean");
  if (fixed_statistics && b.has("training") && b.flag("training"))
    throw Unsupported("batch_norm that changes its statistics");
  const Tensor x = b.dense(b.tensor("input"));
  const auto scale = b.optional("weight"), shift = b.optional("bias");
  const auto flags = normalisation_flags(scale.has_value(), shift.has_value(), fixed_statistics);
  const dnnl::batch_normalization_forward::primitive_desc pd(b.engine(), dnnl::prop_kind::forward_inference, x.desc,
                                                             x.desc, static_cast<float>(b.number("eps")), flags,
                                                             Builder::attr());
  std::vector<std::pair<int, Tensor>> arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, b.result_of(pd)}};
  if (fixed_statistics) {
    arguments.emplace_back(DNNL_ARG_MEAN, b.plain(b.tensor("running_mean")));
    arguments.emplace_back(DNNL_ARG_VARIANCE, b.plain(b.tensor("running_var")));
  }
  if (scale) arguments.emplace_back(DNNL_ARG_SCALE, b.plain(*scale));
  if (shift) arguments.emplace_back(DNNL_ARG_SHIFT, b.plain(*shift));
  b.add(dnnl::batch_normalization_forward(pd), pd, std::move(arguments));
}

// Rows of what is normalised; with their statistics, where a gradient will read these.
void layer_norm(Builder& b) {
  const bool trains = b.outputs() > 1;
  const Tensor x = rows_of(b, "input");
  const auto over = x.dims()[1];
  const auto scale = b.optional("weight"), shift = b.optional("bias");
  const auto flags = normalisation_flags(scale.has_value(), shift.has_value(), false);
  const auto kind = trains ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const dnnl::layer_normalization_forward::primitive_desc pd(
      b.engine(), kind, x.desc, x.desc, static_cast<float>(b.number("eps")), flags, Builder::attr());
  std::vector<std::pair<int, Tensor>> arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, b.result_of(pd)}};
  if (scale) arguments.emplace_back(DNNL_ARG_SCALE, b.plain(b.reshaped(*scale, {over})));
  if (shift) arguments.emplace_back(DNNL_ARG_SHIFT, b.plain(b.reshaped(*shift, {over})));
  if (trains) {
    const Tensor mean = b.temporary(row_major({x.dims()[0]})), variance = b.temporary(row_major({x.dims()[0]}));
    arguments.emplace_back(DNNL_ARG_MEAN, mean);
    arguments.emplace_back(DNNL_ARG_VARIANCE, variance);
    b.is(b.reshaped(mean, b.shape(1)), 1);
    b.leave(2, {variance, {}, {}, b.number("eps")});
  }
  b.add(dnnl::layer_normalization_forward(pd), pd, std::move(arguments));
}

}  // namespace

dnnl::normalization_flags normalisation_flags(bool scale, bool shift, bool fixed_statistics) {
  using dnnl::normalization_flags;
  auto flags = fixed_statistics ? normalization_flags::use_global_stats : normalization_flags::none;
  if (scale) flags |= normalization_flags::use_scale;
  if (shift) flags |= normalization_flags::use_shift;
  return flags;
}

Tensor rows_of(Builder& b, std::string_view argument) {
  const auto over = product(b.integers("normalized_shape"));
  const Tensor whole = b.tensor(argument);
  return b.plain(b.reshaped(whole, {over == 0 ? 0 : product(whole.dims()) / over, over}));
}

void add_normalisations(Operations& table) {
  table["batch_norm"] = table["_native_batch_norm_legit_no_training"] = batch_norm;
  table["layer_norm"] = table["native_layer_norm"] = layer_norm;
}

}  // namespace strata::onednn
