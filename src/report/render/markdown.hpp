// SPDX-License-Identifier: Apache-2.0
// A document as Markdown, for issues, pull requests and notes.
#pragma once

#include <string>

#include "report/document.hpp"

namespace strata::document {

// Figures become tables of some of their points: a row a line, a column a place on the x axis.
std::string render_markdown(const Document& document);

}  // namespace strata::document
