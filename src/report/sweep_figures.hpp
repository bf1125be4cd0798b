// SPDX-License-Identifier: Apache-2.0
// The pictures of a sweep: who is the fastest where, lines along an axis, quantities over two axes (as maps or in
// space).
#pragma once

#include <vector>

#include "report/document.hpp"
#include "report/sweep_layout.hpp"

namespace strata::report {

// Who is the fastest in each field, or who may be, or why there is none.
std::vector<document::HeatMap> sweep_winners(const analysis::Grid& grid, const SweepLayout& layout);

// Time of a sample along the columns' axis, a panel a row. No item where no axis varies.
document::Section sweep_lines(const analysis::Grid& grid, const SweepLayout& layout);

// Speedup over the reference, times, throughput, memory and meters over rows and columns, a layer a level; quantities
// that no level has are left out.
document::Section sweep_surfaces(const analysis::Grid& grid, const SweepLayout& layout);

}  // namespace strata::report
