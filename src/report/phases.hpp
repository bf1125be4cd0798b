// SPDX-License-Identifier: Apache-2.0
// What a training step consists of, level by level: throughput and the median time of each phase, as cells for every
// format.
#pragma once

#include "report/access.hpp"
#include "report/format.hpp"
#include "report/table.hpp"

namespace strata::report {

bool is_training(const Json& one_case);

struct PhaseTable {
  Cells header;
  std::vector<Cells> rows;  // one a measured level; empty in inference
};
PhaseTable phase_table(const Json& one_case, const Glyphs& glyphs);

}  // namespace strata::report
