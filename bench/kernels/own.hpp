// SPDX-License-Identifier: Apache-2.0
// The kit's kernels that can compute a layer.
#pragma once

#include <vector>

#include "contest.hpp"
#include "problem.hpp"

namespace bench {

// With the plan that each chooses for itself, or with many. `copies` of the weights, used in turn.
std::vector<Contender> own_kernels(const Problem& problem, int copies, int threads, bool all_plans);

}  // namespace bench
