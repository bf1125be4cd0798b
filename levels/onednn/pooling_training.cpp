// SPDX-License-Identifier: Apache-2.0
// Maximum pooling that leaves where it found the maxima (oneDNN's workspace in place of indices), and the gradients of
// pooling.
#include <algorithm>

#include "operations.hpp"
#include "pooling.hpp"

namespace strata::onednn {
namespace {

using dnnl::algorithm;
using dnnl::pooling_backward;
using dnnl::pooling_forward;

pooling_forward::primitive_desc forward_of(Builder& b, algorithm how, const memory::desc& from, const memory::desc& to,
                                           const Window& window) {
  return {b.engine(),
          dnnl::prop_kind::forward_training,
          how,
          from,
          to,
          window.stride,
          window.kernel,
          window.dilation,
          window.before,
          window.after,
          Builder::attr()};
}

pooling_backward::primitive_desc backward_of(Builder& b, const pooling_forward::primitive_desc& forward, algorithm how,
                                             const Window& window) {
  return {b.engine(),    how,           forward.src_desc(), forward.dst_desc(),
          window.stride, window.kernel, window.dilation,    window.before,
          window.after,  forward,       Builder::attr()};
}

void max_pool(Builder& b) {
  const Tensor x = b.dense(b.tensor("self"));
  if (x.dims().size() != 4) throw Unsupported("pooling of an input without a batch");
  const memory::desc any(b.shape(), memory::data_type::f32, memory::format_tag::any);
  const auto pd =
      forward_of(b, algorithm::pooling_max, x.desc, any, counted_from_0(b.pooling_window(x.dims(), b.shape(), 2)));
  const Tensor workspace = b.temporary(pd.workspace_desc());
  b.call<pooling_forward>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WORKSPACE, workspace}, {DNNL_ARG_DST, b.result_of(pd)}});
  b.leave(1, {workspace, x.desc, pd.dst_desc()});
}

void max_pool_backward(Builder& b) {
  const auto& left = b.left("indices");
  const Dims in = b.shape(), out = b.tensor("grad_output").dims();
  const auto window = counted_from_0(b.pooling_window(in, out, 2));
  const auto pd =
      backward_of(b, forward_of(b, algorithm::pooling_max, left.from, left.to, window), algorithm::pooling_max, window);
  b.call<pooling_backward>(pd, {{DNNL_ARG_DIFF_DST, b.in(b.tensor("grad_output"), pd.diff_dst_desc())},
                                {DNNL_ARG_WORKSPACE, left.tensor},
                                {DNNL_ARG_DIFF_SRC, b.result(pd.diff_src_desc())}});
}

// Each place gets its shares of the outputs whose windows it lies in.
void average_backward(Builder& b, const Averaging& averaging) {
  const Tensor gradient = b.tensor("grad_output");
  if (!averaging.matrix.empty()) {
    const auto rows = product(gradient.dims()) / std::max<std::int64_t>(averaging.outputs, 1);
    const Tensor shares = b.constant({averaging.inputs, averaging.outputs}, averaging.matrix);
    multiply(b, b.plain(b.reshaped(gradient, {rows, averaging.outputs})), permuted(shares, {1, 0}), true);
    return;
  }
  const Tensor x = b.tensor("self");  // its layout alone: the gradient is to lie as it does
  const memory::desc any(gradient.dims(), memory::data_type::f32, memory::format_tag::any);
  const auto from = is_dense(x.desc) && !x.elsewhere() ? x.desc : row_major(x.dims());
  const auto forward = forward_of(b, averaging.how, from, any, averaging.window);
  const auto pd = backward_of(b, forward, averaging.how, averaging.window);
  b.call<pooling_backward>(
      pd, {{DNNL_ARG_DIFF_DST, b.in(gradient, pd.diff_dst_desc())}, {DNNL_ARG_DIFF_SRC, b.result(pd.diff_src_desc())}});
}

void avg_pool_backward(Builder& b) {
  average_backward(b, averaging_of(b, b.shape(), b.tensor("grad_output").dims(), 2));
}

void adaptive_avg_pool_backward(Builder& b) {
  average_backward(b, adaptive_averaging(b.shape(), b.tensor("grad_output").dims(), 2));
}

}  // namespace

void add_poolings_training(Operations& table) {
  table["max_pool2d_with_indices"] = max_pool;
  table["max_pool2d_with_indices_backward"] = max_pool_backward;
  table["avg_pool2d_backward"] = avg_pool_backward;
  table["_adaptive_avg_pool2d_backward"] = adaptive_avg_pool_backward;
}

}  // namespace strata::onednn
