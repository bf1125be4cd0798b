// SPDX-License-Identifier: Apache-2.0
// Batch norm in training: the batch's statistics, the running ones after the step (loops of strata's, since oneDNN's
// sums are too coarse for the former and it has no call for the latter), and the gradients; those of layer norm. oneDNN
// wants the variance where PyTorch keeps 1 / deviation.
#include "operations.hpp"
#include "statistics.hpp"

namespace strata::onednn {
namespace {

// new = (1 - momentum) old + momentum (factor batch's); the running variance is of an unbiased estimate.
void run_on(Builder& b, const char* running, const Tensor& of_batch, double factor, std::size_t output) {
  const Tensor old = b.plain(b.tensor(running)), to = b.temporary(row_major(of_batch.dims()));
  const auto before = b.handle(old), batch = b.handle(of_batch), after = b.handle(to);
  const auto momentum = b.number("momentum");
  const auto count = product(of_batch.dims());
  b.own("statistics", [=] {
    const auto *from = static_cast<const float*>(before.get_data_handle()),
               *now = static_cast<const float*>(batch.get_data_handle());
    auto* into = static_cast<float*>(after.get_data_handle());
    const auto keep = static_cast<float>(1 - momentum), take = static_cast<float>(momentum * factor);
    for (std::int64_t i = 0; i < count; ++i) into[i] = keep * from[i] + take * now[i];
  });
  b.is(to, output);
}

void forward(Builder& b) {
  if (!b.flag("training")) throw Unsupported("a batch norm for training with given statistics");
  Tensor x = b.dense(b.tensor("input"));
  if (!channel_order(x.desc)) x = b.plain(x);
  const auto scale = b.optional("weight"), shift = b.optional("bias");
  const dnnl::batch_normalization_forward::primitive_desc pd(
      b.engine(), dnnl::prop_kind::forward_training, x.desc, x.desc, static_cast<float>(b.number("eps")),
      normalisation_flags(scale.has_value(), shift.has_value(), true), Builder::attr());
  const Dims channels{x.dims()[1]};
  const Tensor mean = b.temporary(row_major(channels)), variance = b.temporary(row_major(channels));
  b.own(layout_name(x.desc), [order = *channel_order(x.desc), from = b.handle(x), middle = b.handle(mean),
                              spread = b.handle(variance)] {
    channel_statistics(order, static_cast<const float*>(from.get_data_handle()),
                       static_cast<float*>(middle.get_data_handle()), static_cast<float*>(spread.get_data_handle()));
  });
  std::vector<std::pair<int, Tensor>> arguments{
      {DNNL_ARG_SRC, x}, {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}, {DNNL_ARG_DST, b.result_of(pd)}};
  if (scale) arguments.emplace_back(DNNL_ARG_SCALE, b.plain(*scale));
  if (shift) arguments.emplace_back(DNNL_ARG_SHIFT, b.plain(*shift));
  b.add(dnnl::batch_normalization_forward(pd), pd, std::move(arguments));
  b.is(mean, 1);
  b.leave(2, {.tensor = variance});
  if (b.outputs() < 5) return;
  const auto n = static_cast<double>(product(x.dims()) / channels[0]);
  run_on(b, "running_mean", mean, 1, 3);
  run_on(b, "running_var", variance, n / (n - 1), 4);
}

// Memory for the gradients of input, scale and shift: outputs, where `mask` names them.
void add_gradients(Builder& b, const std::vector<bool>& mask, bool of_scale, const memory::desc& like,
                   const memory::desc& of_weight, std::vector<std::pair<int, Tensor>>& arguments) {
  std::size_t output = 0;
  arguments.emplace_back(DNNL_ARG_DIFF_SRC, mask.at(0) ? b.result(like, output++) : b.temporary(like));
  if (of_scale)
    arguments.emplace_back(DNNL_ARG_DIFF_SCALE, mask.at(1) ? b.result(of_weight, output++) : b.temporary(of_weight));
  if (mask.at(2)) arguments.emplace_back(DNNL_ARG_DIFF_SHIFT, b.result(of_weight, output));
}

void backward(Builder& b) {
  const bool fixed_statistics = !b.flag("train");
  const auto mask = b.flags("output_mask");
  const Tensor x = b.dense(b.tensor("input"));
  const Tensor gradient = b.in(b.tensor("grad_out"), x.desc);
  const auto scale = b.optional("weight");
  const auto flags = normalisation_flags(scale.has_value(), mask.at(2), fixed_statistics);
  const auto eps = static_cast<float>(b.number("eps"));
  const auto kind = mask.at(1) || mask.at(2) ? dnnl::prop_kind::backward : dnnl::prop_kind::backward_data;
  const dnnl::batch_normalization_forward::primitive_desc hint(b.engine(), dnnl::prop_kind::forward_training, x.desc,
                                                               x.desc, eps, flags, Builder::attr());
  const dnnl::batch_normalization_backward::primitive_desc pd(b.engine(), kind, x.desc, x.desc, x.desc, eps, flags,
                                                              hint, Builder::attr());
  const Tensor mean = b.plain(b.tensor(fixed_statistics ? "running_mean" : "save_mean")),
               variance = fixed_statistics ? b.plain(b.tensor("running_var")) : b.left("save_invstd").tensor;
  std::vector<std::pair<int, Tensor>> arguments{
      {DNNL_ARG_SRC, x}, {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}, {DNNL_ARG_DIFF_DST, gradient}};
  if (scale) arguments.emplace_back(DNNL_ARG_SCALE, b.plain(*scale));
  add_gradients(b, mask, scale && kind == dnnl::prop_kind::backward, x.desc, row_major({x.dims()[1]}), arguments);
  b.add(dnnl::batch_normalization_backward(pd), pd, std::move(arguments));
}

void layer_norm_backward(Builder& b) {
  const auto mask = b.flags("output_mask");
  const Tensor x = rows_of(b, "input"), gradient = rows_of(b, "grad_out");
  const auto rows = x.dims()[0], over = x.dims()[1];
  const auto scale = b.optional("weight");
  const auto flags = normalisation_flags(scale.has_value(), mask.at(2), false);
  const auto& variance = b.left("rstd");
  const auto eps = static_cast<float>(variance.epsilon);
  const dnnl::layer_normalization_forward::primitive_desc hint(b.engine(), dnnl::prop_kind::forward_training, x.desc,
                                                               x.desc, eps, flags, Builder::attr());
  // oneDNN 3.2 cannot leave out the gradient of a scale that it is given, and reads the shift, too
  const auto kind = scale || mask.at(2) ? dnnl::prop_kind::backward : dnnl::prop_kind::backward_data;
  const dnnl::layer_normalization_backward::primitive_desc pd(b.engine(), kind, x.desc, x.desc, x.desc, eps, flags,
                                                              hint, Builder::attr());
  std::vector<std::pair<int, Tensor>> arguments{{DNNL_ARG_SRC, x},
                                                {DNNL_ARG_MEAN, b.plain(b.reshaped(b.tensor("mean"), {rows}))},
                                                {DNNL_ARG_VARIANCE, variance.tensor},
                                                {DNNL_ARG_DIFF_DST, gradient}};
  if (scale) arguments.emplace_back(DNNL_ARG_SCALE, b.plain(b.reshaped(*scale, {over})));
  if (mask.at(2)) arguments.emplace_back(DNNL_ARG_SHIFT, b.plain(b.reshaped(b.tensor("bias"), {over})));
  add_gradients(b, mask, scale.has_value(), x.desc, row_major({over}), arguments);
  b.add(dnnl::layer_normalization_backward(pd), pd, std::move(arguments));
}

}  // namespace

void add_normalisations_training(Operations& table) {
  table["_native_batch_norm_legit"] = table["_native_batch_norm_legit_functional"] = forward;
  table["native_batch_norm_backward"] = backward;
  table["native_layer_norm_backward"] = layer_norm_backward;
}

}  // namespace strata::onednn
