// SPDX-License-Identifier: Apache-2.0
// ATen's operations that the table of operations lacks and that multiply no matrices: element by element, reductions,
// comparisons, moves, random numbers, pooling, interpolation. They add nothing to a network's FLOPs.
#pragma once

#include <string_view>

namespace strata::graph {

// `name` as Node::operation(), without the underscore of an operation in place.
bool multiplies_no_matrices(std::string_view name);

}  // namespace strata::graph
