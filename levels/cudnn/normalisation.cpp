// SPDX-License-Identifier: Apache-2.0
// Batch norm by cuDNN, in inference and in training with its gradients; the running statistics after a step, and layer
// norm, by kernels of strata's.
#include "kit_cuda/kernels/normalisation.hpp"

#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Stream;

// cuDNN wants images: what is missing has one element. Channels stay where they are.
View image_of(const View& view) {
  View image = view;
  for (; image.rank < 4; ++image.rank) {
    image.extents[image.rank] = 1;
    image.strides[image.rank] = 1;
  }
  return image;
}

// As cuDNN reads it: row-major or channels last.
Tensor readable(Builder& b, const Tensor& x) {
  return is_channels_last(x.view) ? x : b.plain(x);
}

// A scale or shift that is left out is 1 or 0, since cuDNN always multiplies and adds.
Tensor by_channel(Builder& b, const char* argument, Index channels, float without) {
  const auto operand = b.optional(argument);
  return operand ? b.plain(*operand) : b.filled(row_major({channels}), without);
}

void inference(Builder& b) {
  if (b.has("training") && b.flag("training")) throw Unsupported("batch_norm with the batch's own statistics");
  const Tensor x = readable(b, b.tensor("input")), y = b.result(x.view);
  const auto channels = x.dims()[1];
  const Tensor scale = by_channel(b, "weight", channels, 1), shift = by_channel(b, "bias", channels, 0),
               mean = b.plain(b.tensor("running_mean")), variance = b.plain(b.tensor("running_var"));
  b.call(b.calls().batch_norm(BatchNormInferenceCall{.view = image_of(x.view),
                                                     .x = x.data(),
                                                     .scale = scale.data(),
                                                     .shift = shift.data(),
                                                     .mean = mean.data(),
                                                     .variance = variance.data(),
                                                     .y = y.data(),
                                                     .epsilon = b.number("eps")}),
         x.view, y.view);
}

void forward(Builder& b) {
  if (!b.flag("training")) throw Unsupported("a batch norm for training with given statistics");
  const Tensor x = readable(b, b.tensor("input")), y = b.result(x.view);
  const auto channels = x.dims()[1];
  const Tensor scale = by_channel(b, "weight", channels, 1), shift = by_channel(b, "bias", channels, 0),
               mean = b.result(row_major({channels}), 1), deviation = b.result(row_major({channels}), 2);
  const auto epsilon = b.number("eps");
  b.call(b.calls().batch_norm(BatchNormCall{.view = image_of(x.view),
                                            .x = x.data(),
                                            .scale = scale.data(),
                                            .shift = shift.data(),
                                            .y = y.data(),
                                            .mean = mean.data(),
                                            .deviation = deviation.data(),
                                            .epsilon = epsilon}),
         x.view, y.view);
  if (b.outputs() < 5) return;
  const Tensor old_mean = b.plain(b.tensor("running_mean")), old_variance = b.plain(b.tensor("running_var")),
               new_mean = b.result(row_major({channels}), 3), new_variance = b.result(row_major({channels}), 4);
  const auto momentum = b.number("momentum");
  const Index count = x.view.count() / std::max<Index>(channels, 1);
  b.own(
      [=](Stream stream) {
        kit_cuda::run_statistics(stream, {.mean = mean.data(),
                                          .deviation = deviation.data(),
                                          .channels = channels,
                                          .count = count,
                                          .epsilon = epsilon,
                                          .momentum = momentum,
                                          .old_mean = old_mean.data(),
                                          .old_variance = old_variance.data(),
                                          .new_mean = new_mean.data(),
                                          .new_variance = new_variance.data()});
      },
      mean.view, mean.view);
}

// By given statistics, which stay: cuDNN has no call for it.
void backward_of_given(Builder& b, const Tensor& gradient, const Tensor& x, const std::vector<bool>& mask) {
  kit_cuda::BatchNormBackward how{.gradient = gradient.source(), .x = x.source(), .epsilon = b.number("eps")};
  const Tensor mean = b.plain(b.tensor("running_mean")), variance = b.plain(b.tensor("running_var"));
  how.mean = mean.data();
  how.variance = variance.data();
  const auto scale = b.optional("weight");
  if (scale) how.scale = scale->data();
  const View channels = row_major({x.dims()[1]});
  std::size_t output = 0;
  if (mask.at(0)) how.of_x = b.result(x.view, output++).target();
  if (mask.at(1)) how.of_scale = b.result(channels, output++).data();
  if (mask.at(2)) how.of_shift = b.result(channels, output).data();
  b.own([=](Stream stream) { kit_cuda::batch_norm_backward(stream, how); }, gradient.view, x.view);
}

void backward(Builder& b) {
  const auto mask = b.flags("output_mask");
  const Tensor x = readable(b, b.tensor("input")), gradient = b.in(b.tensor("grad_out"), x.view);
  if (!b.flag("train")) return backward_of_given(b, gradient, x, mask);
  const View channels = row_major({x.dims()[1]});
  const Tensor scale = by_channel(b, "weight", x.dims()[1], 1), mean = b.plain(b.tensor("save_mean")),
               deviation = b.plain(b.tensor("save_invstd"));
  std::size_t output = 0;
  const auto output_if_asked = [&](std::size_t which, const View& view) {
    return mask.at(which) ? b.result(view, output++) : b.temporary(view);
  };
  const Tensor of_x = output_if_asked(0, x.view), of_scale = output_if_asked(1, channels),
               of_shift = output_if_asked(2, channels);
  b.call(b.calls().batch_norm(BatchNormBackwardCall{.view = image_of(x.view),
                                                    .gradient = gradient.data(),
                                                    .x = x.data(),
                                                    .scale = scale.data(),
                                                    .mean = mean.data(),
                                                    .deviation = deviation.data(),
                                                    .of_x = of_x.data(),
                                                    .of_scale = of_scale.data(),
                                                    .of_shift = of_shift.data(),
                                                    .epsilon = b.number("eps")}),
         gradient.view, of_x.view);
}

// What lies row-major, as data; null where the argument is left out.
const float* plain_data(Builder& b, const char* argument) {
  const auto operand = b.optional(argument);
  return operand ? b.plain(*operand).data() : nullptr;
}

// Its statistics are kept where a gradient will read them.
void layer_norm(Builder& b) {
  const Tensor x = b.plain(b.tensor("input")), y = b.result(x.view);
  const auto over = product(b.integers("normalized_shape"));
  kit_cuda::LayerNorm how{.x = x.data(),
                          .rows = over == 0 ? 0 : x.view.count() / over,
                          .length = over,
                          .scale = plain_data(b, "weight"),
                          .shift = plain_data(b, "bias"),
                          .epsilon = b.number("eps"),
                          .y = y.data()};
  if (b.outputs() > 1) {
    how.mean = b.result(row_major(b.shape(1)), 1).data();
    how.deviation = b.result(row_major(b.shape(2)), 2).data();
  }
  b.own([=](Stream stream) { kit_cuda::layer_norm(stream, how); }, x.view, y.view);
}

void layer_norm_backward(Builder& b) {
  const auto mask = b.flags("output_mask");
  const Dims last = b.integers("normalized_shape");
  const Tensor gradient = b.plain(b.tensor("grad_out")), x = b.plain(b.tensor("input"));
  const auto over = product(last);
  kit_cuda::LayerNormBackward how{.gradient = gradient.data(),
                                  .x = x.data(),
                                  .rows = over == 0 ? 0 : x.view.count() / over,
                                  .length = over,
                                  .mean = plain_data(b, "mean"),
                                  .deviation = plain_data(b, "rstd"),
                                  .scale = plain_data(b, "weight")};
  std::size_t output = 0;
  if (mask.at(0)) how.of_x = b.result(x.view, output++).data();
  if (mask.at(1)) how.of_scale = b.result(row_major(last), output++).data();
  if (mask.at(2)) how.of_shift = b.result(row_major(last), output).data();
  b.own([=](Stream stream) { kit_cuda::layer_norm_backward(stream, how); }, gradient.view, x.view);
}

}  // namespace

void add_normalisations(Operations& table) {
  table["batch_norm"] = table["_native_batch_norm_legit_no_training"] = inference;
  table["_native_batch_norm_legit"] = table["_native_batch_norm_legit_functional"] = forward;
  table["native_batch_norm_backward"] = backward;
  table["layer_norm"] = table["native_layer_norm"] = layer_norm;
  table["native_layer_norm_backward"] = layer_norm_backward;
}

}  // namespace strata::cudnn
