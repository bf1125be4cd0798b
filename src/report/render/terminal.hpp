// SPDX-License-Identifier: Apache-2.0
// A document on a terminal.
#pragma once

#include <string>

#include "report/document.hpp"
#include "report/terminal.hpp"

namespace strata::document {

// The summary, then each section; tables in columns that fit the width (at least 40), and below each other where they
// cannot; figures as a sparkline a line, with its first and last value. Commands are longer than a line if they must
// be.
std::string render_terminal(const Document& document, const report::TerminalStyle& style);

// Some sections of one, an empty line between two.
std::string render_terminal(const std::vector<Section>& sections, const report::TerminalStyle& style);

}  // namespace strata::document
