// SPDX-License-Identifier: Apache-2.0
// The table "accuracy against speed" in words and cells, the same for every format.
#pragma once

#include "report/access.hpp"
#include "report/format.hpp"
#include "report/table.hpp"

namespace strata::report {

struct AccuracyTable {
  std::string title, note;
  Cells header;
  std::vector<Cells> rows;             // one a point, the reference's mode first
  std::vector<std::string> sentences;  // one a scored point: "eager in bf16: 1.90 times as fast, score -0.03 (-0.10 to
                                       // 0.04), 4 of 10,000 answers differ"
};
// Brief, for a terminal: what a score says stands in the sentences alone.
std::vector<AccuracyTable> accuracy_tables(const Json& run, const Glyphs& glyphs, bool brief = false);

// The point of a row, or null.
const Json& accuracy_point(const Json& run, const std::string& case_id, const Json& row);

// The tables as lines of text; "" where the run has none.
std::string accuracy_text(const Json& run, const Glyphs& glyphs, int width);
std::string accuracy_markdown(const Json& run);

}  // namespace strata::report
