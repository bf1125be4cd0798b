// SPDX-License-Identifier: Apache-2.0
// A document in the format that --format names.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"
#include "report/document.hpp"
#include "report/terminal.hpp"

namespace strata::document {

// `format`: text, html, md, csv, json. `plotly_js` is read for html, `style` for text.
Result<std::string> render(const Document& document, const std::string& format, const std::filesystem::path& plotly_js,
                           const report::TerminalStyle& style);

}  // namespace strata::document
