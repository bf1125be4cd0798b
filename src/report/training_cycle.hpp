// SPDX-License-Identifier: Apache-2.0
// What a level costs from its code to its tests: lines, preparing, starting, an epoch, a test of all images, shipping.
#pragma once

#include <vector>

#include "report/document.hpp"
#include "report/trained_level.hpp"

namespace strata::report {

// A table by level, and one of how far the reference is behind the best in each time. Measured levels alone; nothing in
// it where there is none.
document::Section life_cycle(const std::vector<TrainedLevel>& levels, const store::Case& run_case,
                             bool reliable = true);

}  // namespace strata::report
