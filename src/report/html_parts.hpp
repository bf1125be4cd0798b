// SPDX-License-Identifier: Apache-2.0
// The pieces html.cpp puts together. Every function returns markup in which all text from the result is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/access.hpp"
#include "report/format.hpp"

namespace strata::report {

// `& < > " '` as character references, control characters gone; safe in text and in quoted attributes.
std::string escape_html(std::string_view text);

// JSON that can stand inside <script>: no '<', '>' or '&' and no line separators that JavaScript dislikes.
std::string script_json(const Json& value);

// JavaScript that can stand inside <script>: "</script" and "<!--" cannot end or change it.
std::string script_text(std::string code);

// From the doctype to <body>, for a page that asks nobody for anything. `safe_title`: escaped.
std::string page_head(const std::string& safe_title, std::string_view styles);

// A cell of a table: text (escaped later), or markup that is already safe.
struct Cell {
  std::string text;
  bool is_markup = false;
  bool is_number = false;
};
Cell words(std::string text);
Cell number_cell(std::string text);  // right-aligned; "" shows as an en dash that says "unknown"
Cell markup(std::string safe);

// A table in a container that scrolls by itself and takes the keyboard's focus; the first cell of a row is its header.
std::string html_table(const std::string& caption, const std::vector<std::string>& header,
                       const std::vector<std::vector<Cell>>& rows, const std::string& css_class = "");

// <details> with a summary of text and a body of markup.
std::string html_details(const std::string& summary, const std::string& body, bool open = false);

// A figure that report.js fills, with a sentence for screen readers and the same numbers as a table.
std::string html_figure(const std::string& kind, const std::string& run_case, const std::string& title,
                        const std::string& description, const std::string& table);

// The sections of one case; `where` is "r0c1", the prefix of every id in them.
std::string html_first_screen(const Json& run, const Json& one_case, const std::string& where);
std::string html_ledger(const Json& one_case, const std::string& where);
std::string html_figures(const Json& one_case, const std::string& where);
std::string html_bill(const Json& one_case, const std::string& where);
std::string html_all_numbers(const Json& one_case, const std::string& where);
std::string html_certificates(const Json& one_case, const std::string& where);

// The tables "accuracy against speed" of a run, the `index`-th of the page; "" where it has none.
std::string html_accuracy(const Json& run, std::size_t index);

// The ledger as an SVG outline with bars from zero; "" where it has no edge.
std::string ledger_svg(const Json& one_case, const std::string& where);

}  // namespace strata::report
