// SPDX-License-Identifier: Apache-2.0
// Windows of convolutions and poolings, as fields of the calls: of a layer and of its gradient alike.
#pragma once

#include "generate/emitter.hpp"

namespace strata::generate {

struct Window {
  std::vector<std::int64_t> kernel, stride, dilation, before, after;
  bool exact = true;  // no window begins or ends beyond the padding that was asked for
};

// From images of shape `in` to `out`, by the step's kernel_size, stride, padding and dilation.
Window pool_window(const Emitter& e, const graph::Shape& in, const graph::Shape& out);
// Of an adaptive pooling; not exact: windows of unequal size.
Window adaptive_window(const graph::Shape& in, const graph::Shape& out);
Fields fields_of(const Window& window);

// Windows of unequal size along the dimensions of an image, as UnevenPool::spans.
std::string adaptive_spans(const graph::Shape& in, const graph::Shape& out);
std::string window_spans(const Window& window, const graph::Shape& in, const graph::Shape& out, bool count_padding);
// Of a call with such windows; `source` is what it reads. `divisor` 0: as the spans say.
Fields uneven_fields(const Emitter& e, int source, const std::string& spans, double divisor);

// stride, dilation, before, after and groups of a convolution with a weight of this shape.
Fields convolution_window(const Emitter& e, const graph::Shape& weight);

}  // namespace strata::generate
