// SPDX-License-Identifier: Apache-2.0
// What pooling and its gradients share: windows, and for averages that oneDNN's call cannot describe the matrix.
#pragma once

#include <vector>

#include "builder.hpp"

namespace strata::onednn {

using primitives::Window;

// An average over windows: one pooling call, or a product [inputs, outputs] of the last `rank` dimensions.
struct Averaging {
  Window window;  // dilation as oneDNN counts it
  dnnl::algorithm how = dnnl::algorithm::pooling_avg_exclude_padding;
  std::vector<float> matrix;  // empty: the call can describe it
  std::int64_t inputs = 0, outputs = 0;
};

Averaging averaging_of(Builder& builder, const Dims& in, const Dims& out, std::size_t rank);  // avg_pool
Averaging adaptive_averaging(const Dims& in, const Dims& out, std::size_t rank);

}  // namespace strata::onednn
