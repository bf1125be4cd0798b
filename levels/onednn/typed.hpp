// SPDX-License-Identifier: Apache-2.0
// Tensors of any type as row-major bytes, which strata's own functions (runtime/kit) read and write: oneDNN calculates
// with floats alone.
#pragma once

#include "builder.hpp"
#include "kit/tensor.hpp"

namespace strata::onednn {

// Throws Unsupported for a type that is not known.
kit::Type kit_type(graph::Type type);
// How bytes of this type and shape lie, a scalar as one element; of int64 two s32 an element, since oneDNN knows no
// longer integers.
memory::desc typed_desc(graph::Type type, const Dims& shape);

struct Typed {
  memory bytes;
  kit::Type type;
  Dims shape;  // of at least one dimension

  const void* data() const { return bytes.get_data_handle(); }
  void* to() const { return bytes.get_data_handle(); }
};

// The value's row-major bytes in a run; those of output i.
Typed typed(Builder& builder, int value);
Typed typed_result(Builder& builder, std::size_t i = 0);
// What ATen calls self or input.
int self_of(Builder& builder);

}  // namespace strata::onednn
