// SPDX-License-Identifier: Apache-2.0
// The tables, figures and heat maps of a document as CSV (RFC 4180), with numbers as they are. Texts are left out.
#pragma once

#include <string>

#include "report/document.hpp"

namespace strata::document {

// A column with intervals has two more, ID_low and ID_high; one with absent cells that say why has ID_reason. Figures
// have a row a point (panel, line, x, y, low, high), heat maps a row a field (row, column, value). All in one text: an
// empty line between two, and each row begins with the id of the table, figure or heat map, in the column `table`.
std::string render_csv(const Document& document);

}  // namespace strata::document
