// SPDX-License-Identifier: Apache-2.0
// A document in each of its formats, a file each.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "report/document.hpp"
#include "report/terminal.hpp"

namespace strata::document {

// `format`: text, html, md, csv, json. `plotly_js` is read for html, `style` for text.
Result<std::string> render(const Document& document, const std::string& format, const std::filesystem::path& plotly_js,
                           const report::TerminalStyle& style);

// terminal.cpp

// The summary, then each section; tables in columns that fit the width (at least 40), and below each other where they
// cannot; figures as a sparkline a line, with its first and last value. Commands are longer than a line if they must
// be.
std::string render_terminal(const Document& document, const report::TerminalStyle& style);

// Some sections of one, an empty line between two.
std::string render_terminal(const std::vector<Section>& sections, const report::TerminalStyle& style);

// html.cpp: one HTML page. Figures are drawn by plotly from data in the page; each has its values as a table too. The
// page carries plotly's script, so that it needs nothing beside it, or asks for a copy that pages share.

// Error: plotly.min.js cannot be read. Needs none where the document has no figure.
Result<std::string> render_html(const Document& document, const std::filesystem::path& plotly_js);

// A small page that asks for the script of this name in its own folder.
std::string render_html_beside(const Document& document, const std::string& script);

// markdown.cpp: for issues, pull requests and notes. Figures become tables of some of their points: a row a line, a
// column a place on the x axis.
std::string render_markdown(const Document& document);
std::string markdown_table(const Table& table);

// csv.cpp: the tables, figures and heat maps (RFC 4180), with numbers as they are. Texts are left out.
//
// A column with intervals has two more, ID_low and ID_high; one with absent cells that say why has ID_reason. Figures
// have a row a point (panel, line, x, y, low, high), heat maps a row a field (row, column, value). All in one text: an
// empty line between two, and each row begins with the id of the table, figure or heat map, in the column `table`.
std::string render_csv(const Document& document);

// json.cpp: for programs, every number as it is, sections in their order.
//
// {"schema": "strata.document/1", "title", "subtitle", "summary", "sections", "facts"}; where there are any, "parts" of
// these fields and an "id". Items of a section have a `kind` (text, warning, command, log, table, figure, bars,
// heat_map, surface, facts, details). Rows of a table are objects by the columns' ids: a text, null, or {"value",
// "low", "high", "mark"}, or {"value": null, "reason"}. Fields of a surface's layers are {"value", "low", "high",
// "outcome", "label"}. Alternatives have `choices`. What is not finite is null.
nlohmann::ordered_json to_json(const Document& document);

// The same as text, two spaces deep; ends with a line end.
std::string render_json(const Document& document);

}  // namespace strata::document
