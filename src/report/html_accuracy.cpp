// SPDX-License-Identifier: Apache-2.0
// The section "accuracy against speed" of a run (html_parts.hpp). report.js draws the frontier.
#include <fmt/format.h>

#include "report/accuracy_table.hpp"
#include "report/html_parts.hpp"

namespace strata::report {

std::string html_accuracy(const Json& run, std::size_t index) {
  std::string out;
  const auto tables = accuracy_tables(run, glyphs(true));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const auto& one = tables[i];
    const auto where = fmt::format("r{}a{}", index, i);
    std::vector<std::vector<Cell>> rows;
    for (const auto& cells : one.rows) {
      rows.push_back({words(cells[0]), words(cells[1])});
      for (std::size_t c = 2; c < cells.size(); ++c) rows.back().push_back(number_cell(cells[c]));
    }
    std::string sentences;
    for (const auto& sentence : one.sentences) sentences += "<li>" + escape_html(sentence) + "</li>";
    out += fmt::format(R"(<section id="{0}" aria-labelledby="{0}-h"><h2 id="{0}-h">{1}</h2>)", where,
                       escape_html(one.title));
    if (!sentences.empty()) out += "<ul>" + sentences + "</ul>";
    const auto table = html_table(one.title, one.header, rows);
    out += html_figure(
        "accuracy", where, "Score or error against time",
        "Each mark is a level, filled by its maths mode as the legend's first marks say; to the left is faster. "
        "The line joins those that no other beats in both.",
        table);
    out += "<p class=\"note\">" + escape_html(one.note) + "</p></section>\n";
  }
  return out;
}

}  // namespace strata::report
