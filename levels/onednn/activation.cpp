// SPDX-License-Identifier: Apache-2.0
// Activations: one element-wise call each, in the layout of their input; softmax.
#include <algorithm>
#include <cmath>
#include <limits>

#include "operations.hpp"

namespace strata::onednn {
namespace {

using dnnl::algorithm;
using dnnl::eltwise_forward;

eltwise_forward::primitive_desc describe(Builder& b, algorithm how, const memory::desc& desc, float alpha, float beta) {
  return {b.engine(), dnnl::prop_kind::forward_inference, how, desc, desc, alpha, beta, Builder::attr()};
}

void elementwise(Builder& b, algorithm how, float alpha = 0, float beta = 0) {
  const Tensor x = b.dense(b.tensor("self"));
  const auto pd = describe(b, how, x.desc, alpha, beta);
  b.call<eltwise_forward>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, b.result_of(pd)}});
}

template <algorithm how>
void simple(Builder& b) {
  elementwise(b, how);
}

void clamp_to(Builder& b, double low, double high) {
  elementwise(b, algorithm::eltwise_clip, static_cast<float>(low), static_cast<float>(high));
}

void relu6(Builder& b) {
  clamp_to(b, 0, 6);
}
void clamp(Builder& b) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  clamp_to(b, b.has("min") ? b.number("min") : -infinite, b.has("max") ? b.number("max") : infinite);
}
void hardtanh(Builder& b) {
  clamp_to(b, b.number("min_val"), b.number("max_val"));
}
void hardswish(Builder& b) {
  elementwise(b, algorithm::eltwise_hardswish, 1.0F / 6, 0.5F);
}
void hardsigmoid(Builder& b) {
  elementwise(b, algorithm::eltwise_hardsigmoid, 1.0F / 6, 0.5F);
}
void silu(Builder& b) {
  elementwise(b, algorithm::eltwise_swish, 1);
}
void elu(Builder& b) {
  if (b.number("scale") != 1 || b.number("input_scale") != 1) throw Unsupported("elu with scales");
  elementwise(b, algorithm::eltwise_elu, static_cast<float>(b.number("alpha")));
}
void leaky_relu(Builder& b) {
  elementwise(b, algorithm::eltwise_relu, static_cast<float>(b.number("negative_slope")));
}

void gelu(Builder& b) {
  const bool by_tanh = b.text("approximate") == "tanh";
  elementwise(b, by_tanh ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf);
}

template <algorithm how>
void softmax(Builder& b) {
  const Tensor x = b.dense(b.tensor("self"));
  const auto axis = b.dimension("dim", x.dims().size());
  const dnnl::softmax_forward::primitive_desc pd(b.engine(), dnnl::prop_kind::forward_inference, how, x.desc, x.desc,
                                                 static_cast<int>(axis), Builder::attr());
  b.call<dnnl::softmax_forward>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, b.result_of(pd)}});
}

// In training strata's own loop: oneDNN's logarithm is off by some 3e-6, which is more than the rounding of a loss, and
// the gradients of one sample then do not add up to 0.
void precise_log_softmax(Builder& b) {
  const Tensor x = b.plain(b.tensor("self"));
  const Dims dims = x.dims();
  const auto axis = b.dimension("dim", dims.size());
  const auto extent = dims[axis],
             inner = product(Dims(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, dims.end())),
             rows = extent == 0 ? 0 : product(dims) / extent;
  const Tensor to = b.result(x.desc);
  const auto from = b.handle(x), into = b.handle(to);
  b.own("row-major", [=] {
    const auto* source = static_cast<const float*>(from.get_data_handle());
    auto* target = static_cast<float*>(into.get_data_handle());
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = row / inner * inner * extent + row % inner;
      float most = source[begin];
      for (std::int64_t i = 1; i < extent; ++i) most = std::max(most, source[begin + i * inner]);
      double sum = 0;
      for (std::int64_t i = 0; i < extent; ++i) sum += std::exp(source[begin + i * inner] - most);
      const auto log_sum = static_cast<float>(std::log(sum));
      for (std::int64_t i = 0; i < extent; ++i) target[begin + i * inner] = source[begin + i * inner] - most - log_sum;
    }
  });
}

void log_softmax(Builder& b) {
  if (b.trains()) return precise_log_softmax(b);
  softmax<algorithm::softmax_log>(b);
}

}  // namespace

Tensor applied(Builder& b, algorithm how, const Tensor& x, float alpha, float beta) {
  const Tensor from = b.dense(x);
  const auto pd = describe(b, how, from.desc, alpha, beta);
  const Tensor to = b.temporary(from.desc);
  b.call<eltwise_forward>(pd, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  return to;
}

void add_activations(Operations& table) {
  table["relu"] = simple<algorithm::eltwise_relu>;
  table["sigmoid"] = simple<algorithm::eltwise_logistic>;
  table["tanh"] = simple<algorithm::eltwise_tanh>;
  table["exp"] = simple<algorithm::eltwise_exp>;
  table["sqrt"] = simple<algorithm::eltwise_sqrt>;
  table["abs"] = simple<algorithm::eltwise_abs>;
  table["clamp"] = table["clamp_min"] = table["clamp_max"] = clamp;
  table["relu6"] = relu6;
  table["hardtanh"] = hardtanh;
  table["hardswish"] = hardswish;
  table["hardsigmoid"] = hardsigmoid;
  table["silu"] = silu;
  table["elu"] = elu;
  table["leaky_relu"] = leaky_relu;
  table["gelu"] = gelu;
  table["softmax"] = table["_softmax"] = softmax<algorithm::softmax_accurate>;
  table["log_softmax"] = table["_log_softmax"] = log_softmax;
}

}  // namespace strata::onednn
