// SPDX-License-Identifier: Apache-2.0
// Operations that only say how to read a tensor, or put one into a part of another. They cost nothing where oneDNN's
// layout allows, else a reorder.
#include "operations.hpp"
#include "primitives/shapes.hpp"

namespace strata::onednn {

void add_shapes(Operations& table) {
  primitives::Shapes<Builder>::add_to(table);
}

}  // namespace strata::onednn
