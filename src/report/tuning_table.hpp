// SPDX-License-Identifier: Apache-2.0
// What --tuned tried of each level: every variant with its time or why it has none, and levels with nothing to try.
#pragma once

#include "report/access.hpp"
#include "report/format.hpp"
#include "report/table.hpp"

namespace strata::report {

struct TuningTable {
  Cells header;
  std::vector<Cells> rows;           // one a variant, the chosen one marked; empty without --tuned
  std::string note;                  // how long each level had; "" without rows
  std::vector<std::string> untried;  // "onnxruntime, openvino: no variants"
};
// Brief, for a terminal: a variant without a number has the three cells name, state, reason.
TuningTable tuning_table(const Json& one_case, const Glyphs& glyphs, bool brief);

}  // namespace strata::report
