// SPDX-License-Identifier: Apache-2.0
// Operations that only say how to read a tensor, or put one into a part of another. A view where strides can say it,
// else a copy.
#include "operations.hpp"
#include "primitives/shapes.hpp"

namespace strata::cudnn {

void add_shapes(Operations& table) {
  primitives::Shapes<Builder>::add_to(table);
}

}  // namespace strata::cudnn
