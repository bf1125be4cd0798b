// SPDX-License-Identifier: Apache-2.0
// The tables, figures and heat maps of a document as CSV (RFC 4180), with numbers as they are. Texts are left out.
#pragma once

#include <string>
#include <vector>

#include "report/document.hpp"

namespace strata::document {

struct CsvTable {
  std::string id;       // of the table, figure or heat map
  std::string content;  // a header and its rows
};

// A column with intervals has two more, ID_low and ID_high; one with absent cells that say why has ID_reason. Figures
// have a row a point (panel, line, x, y, low, high), heat maps a row a field (row, column, value).
std::vector<CsvTable> csv_tables(const Document& document);

// All of them in one text: an empty line between two, and each row begins with the table's id, in the column `table`.
std::string render_csv(const Document& document);

}  // namespace strata::document
