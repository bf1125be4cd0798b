// SPDX-License-Identifier: Apache-2.0
// What a sweep leaves to choose: time against memory, and the choices of which no other is both faster and smaller.
#pragma once

#include "report/document.hpp"
#include "report/sweep_layout.hpp"

namespace strata::report {

// Time of a sample against peak memory, a point a level and batch, a panel for each other work: points of different
// work are never compared. With the front as a line and as a table. No item where nothing has both.
document::Section sweep_time_and_memory(const analysis::Grid& grid, const SweepLayout& layout);

}  // namespace strata::report
