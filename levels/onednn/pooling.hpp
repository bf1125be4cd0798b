// SPDX-License-Identifier: Apache-2.0
// What pooling and its gradients share: windows, and for averages that oneDNN's call cannot describe the matrix.
#pragma once

#include <vector>

#include "builder.hpp"

namespace strata::onednn {

struct PoolingWindow {
  Dims kernel, stride, dilation, before, after;  // dilation as oneDNN counts it: 0 is none
  bool exact = true;                             // no window begins or ends beyond the padding that was asked for
};

// Of a node with kernel_size, stride, padding and perhaps dilation; `in` and `out` are the shapes on both sides.
PoolingWindow pooling_window(Builder& builder, const Dims& in, const Dims& out, std::size_t rank);

// An average over windows: one pooling call, or a product [inputs, outputs] of the last `rank` dimensions.
struct Averaging {
  PoolingWindow window;
  dnnl::algorithm how = dnnl::algorithm::pooling_avg_exclude_padding;
  std::vector<float> matrix;  // empty: the call can describe it
  std::int64_t inputs = 0, outputs = 0;
};

Averaging averaging_of(Builder& builder, const Dims& in, const Dims& out, std::size_t rank);  // avg_pool
Averaging adaptive_averaging(const Dims& in, const Dims& out, std::size_t rank);

}  // namespace strata::onednn
