// SPDX-License-Identifier: Apache-2.0
// What --dynamic found: figures of a row from its raw samples, and the tables of a case for every format.
#pragma once

#include "report/access.hpp"
#include "report/format.hpp"
#include "report/table.hpp"
#include "stats/disturbed.hpp"
#include "store/record.hpp"

namespace strata::report {

// `dynamic` of a row (docs/results_schema.md); null if the run did not ask for it. `sigma`: the process effect;
// `minimum`: the least effect that is claimed; not `reliable`: others had the cores, so none is.
Json dynamic_view(const store::Row& row, const stats::Room& room, double sigma, double minimum, bool reliable = true);

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
