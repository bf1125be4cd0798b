// SPDX-License-Identifier: Apache-2.0
// Averages over windows of any sizes, named one by one: those of an adaptive pooling, or of one whose last windows lie
// in part outside.
#pragma once

#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

// The places [begin, end) of a window along a dimension, and how many it counts.
struct Span {
  Index begin, end, count;
};

struct SpanPool {
  int dims = 0;               // the last ones of the tensor, at most three
  const Span* spans[3] = {};  // along each of them, of each output; on the device
  double divisor = 0;         // 0: the product of what the windows count
};

void span_pool(Stream stream, Source x, const SpanPool& how, Target y);
void span_pool_backward(Stream stream, Source gradient, const SpanPool& how, Target to);

}  // namespace kit_cuda
