// SPDX-License-Identifier: Apache-2.0
// Gradients of activations and softmax: one call each, in the layout of what the forward call read or gave.
#include "operations.hpp"

namespace strata::onednn {
namespace {

using dnnl::algorithm;
using dnnl::eltwise_backward;
using dnnl::eltwise_forward;

// `data`: the argument that the derivative is computed from. DNNL_ARG_SRC for an input, DNNL_ARG_DST for a result.
void elementwise(Builder& b, algorithm how, const char* data, int which, float alpha = 0, float beta = 0) {
  const Tensor x = b.dense(b.tensor(data));
  const Tensor gradient = b.in(b.tensor("grad_output"), x.desc);
  const eltwise_forward::primitive_desc hint(b.engine(), dnnl::prop_kind::forward_training, how, x.desc, x.desc, alpha,
                                             beta, Builder::attr());
  const eltwise_backward::primitive_desc pd(b.engine(), how, x.desc, x.desc, x.desc, alpha, beta, hint,
                                            Builder::attr());
  b.call<eltwise_backward>(
      pd, {{which, x}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_SRC, b.result(pd.diff_src_desc())}});
}

// of ReLU alone, whose result is given
void threshold(Builder& b) {
  if (b.number("threshold") != 0) throw Unsupported("a threshold that is not 0");
  elementwise(b, algorithm::eltwise_relu_use_dst_for_bwd, "self", DNNL_ARG_DST);
}
void sigmoid(Builder& b) {
  elementwise(b, algorithm::eltwise_logistic_use_dst_for_bwd, "output", DNNL_ARG_DST);
}
void tanh(Builder& b) {
  elementwise(b, algorithm::eltwise_tanh_use_dst_for_bwd, "output", DNNL_ARG_DST);
}
// the second kind of clip has no gradient at its ends, as PyTorch's
void hardtanh(Builder& b) {
  elementwise(b, algorithm::eltwise_clip_v2, "self", DNNL_ARG_SRC, static_cast<float>(b.number("min_val")),
              static_cast<float>(b.number("max_val")));
}
void hardswish(Builder& b) {
  elementwise(b, algorithm::eltwise_hardswish, "self", DNNL_ARG_SRC, 1.0F / 6, 0.5F);
}
void hardsigmoid(Builder& b) {
  elementwise(b, algorithm::eltwise_hardsigmoid, "self", DNNL_ARG_SRC, 1.0F / 6, 0.5F);
}
void silu(Builder& b) {
  elementwise(b, algorithm::eltwise_swish, "self", DNNL_ARG_SRC, 1);
}
void leaky_relu(Builder& b) {
  if (b.flag("self_is_result")) throw Unsupported("leaky_relu_backward from the result");
  elementwise(b, algorithm::eltwise_relu, "self", DNNL_ARG_SRC, static_cast<float>(b.number("negative_slope")));
}
void gelu(Builder& b) {
  elementwise(b, b.text("approximate") == "tanh" ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf, "self",
              DNNL_ARG_SRC);
}

template <algorithm how>
void softmax(Builder& b) {
  const Tensor y = b.dense(b.tensor("output"));
  const Tensor gradient = b.in(b.tensor("grad_output"), y.desc);
  const auto axis = static_cast<int>(b.dimension("dim", y.dims().size()));
  const dnnl::softmax_forward::primitive_desc hint(b.engine(), dnnl::prop_kind::forward_training, how, y.desc, y.desc,
                                                   axis, Builder::attr());
  const dnnl::softmax_backward::primitive_desc pd(b.engine(), how, y.desc, y.desc, y.desc, axis, hint, Builder::attr());
  b.call<dnnl::softmax_backward>(
      pd, {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_SRC, b.result(pd.diff_src_desc())}});
}

}  // namespace

void add_activations_backward(Operations& table) {
  table["threshold_backward"] = threshold;
  table["sigmoid_backward"] = sigmoid;
  table["tanh_backward"] = tanh;
  table["hardtanh_backward"] = hardtanh;
  table["hardswish_backward"] = hardswish;
  table["hardsigmoid_backward"] = hardsigmoid;
  table["silu_backward"] = silu;
  table["leaky_relu_backward"] = leaky_relu;
  table["gelu_backward"] = gelu;
  table["_softmax_backward_data"] = softmax<algorithm::softmax_accurate>;
  table["_log_softmax_backward_data"] = softmax<algorithm::softmax_log>;
}

}  // namespace strata::onednn
