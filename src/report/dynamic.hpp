// SPDX-License-Identifier: Apache-2.0
// What --dynamic found, as the tables of a case for every format.
#pragma once

#include "analysis/open_batch.hpp"
#include "report/access.hpp"
#include "report/format.hpp"
#include "report/table.hpp"

namespace strata::report {

using analysis::dynamic_view;

struct DynamicTable {
  Cells header;
  std::vector<Cells> rows;  // empty: the run did not ask for it
};
// A line for each level: what recompiled, what an open batch costs against the fixed one. Brief, for a terminal: a
// level without a number has the three cells level, state, reason.
DynamicTable dynamic_levels(const Json& one_case, const Glyphs& glyphs, bool brief = false);
// A line for each level, a column for each size: the settled time, and what the first call took longer where it
// compiled (brief: a star).
DynamicTable dynamic_sizes(const Json& one_case, const Glyphs& glyphs, bool brief = false);

}  // namespace strata::report
