// SPDX-License-Identifier: Apache-2.0
// A document as one HTML page: figures are drawn by plotly from data in the page; each has its values as a table too.
// The page carries plotly's script, so that it needs nothing beside it, or asks for a copy that pages share.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"
#include "report/document.hpp"

namespace strata::document {

// Error: plotly.min.js cannot be read. Needs none where the document has no figure.
Result<std::string> render_html(const Document& document, const std::filesystem::path& plotly_js);

// A small page that asks for the script of this name in its own folder.
std::string render_html_beside(const Document& document, const std::string& script);

}  // namespace strata::document
