// SPDX-License-Identifier: Apache-2.0
// A table of a document in the width of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/document.hpp"
#include "report/format.hpp"

namespace strata::document {

// Text is folded where the table is too wide; a table whose
// numbers alone are too wide comes in several parts, each with the first column. Control characters are gone.
struct TextTable {
  struct Part {
    std::vector<std::string> header, rows;
  };
  std::vector<Part> parts;
};
TextTable text_table(const Table& table, std::size_t width, const report::Glyphs& glyphs);

// Lines of at most `width` columns, broken at spaces, and inside of words that are longer.
std::vector<std::string> fold(const std::string& text, std::size_t width);

// At most `width` columns, with an ellipsis where something is cut off.
std::string shortened(const std::string& text, std::size_t width, const std::string& ellipsis);

// Filled with spaces up to `width` columns.
std::string padded_to(const std::string& text, std::size_t width, Align align);

}  // namespace strata::document
