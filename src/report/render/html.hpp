// SPDX-License-Identifier: Apache-2.0
// A document as one HTML page that needs nothing beside it: figures are drawn by plotly, which it carries, from data in
// the page; each has its values as a table too.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"
#include "report/document.hpp"

namespace strata::document {

// Error: plotly.min.js cannot be read. Needs none where the document has no figure.
Result<std::string> render_html(const Document& document, const std::filesystem::path& plotly_js);

}  // namespace strata::document
