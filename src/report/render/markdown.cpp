// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "common/escape.hpp"
#include "report/render/cell_text.hpp"
#include "report/render/points.hpp"
#include "report/render/render.hpp"

namespace strata::document {
namespace {

constexpr std::size_t kMostPlaces = 6;

// Every text of the document goes through this or prose() or fenced(): one line that Markdown shows as it is.
std::string md(const std::string& text) {
  const auto line = escape::markdown(text);
  const auto first = line.find_first_not_of(' ');  // "** x **" is no bold x
  return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(' ') + 1 - first);
}

// At the beginning of a line, where "- ", "+ ", "1. ", "===" and four spaces would mean something.
std::string prose(const std::string& text) {
  auto line = md(text);
  const auto number = line.find_first_not_of("0123456789");
  if (number != std::string::npos && number > 0 && (line[number] == '.' || line[number] == ')'))
    line.insert(number, 1, '\\');
  else if (line.starts_with('-') || line.starts_with('+') || line.starts_with('='))
    line.insert(0, 1, '\\');
  return line;
}

std::string fenced(const std::vector<std::string>& lines, const std::string& language) {
  std::size_t longest = 2, run = 0;
  std::string body;
  for (const auto& each : lines) body += escape::one_line(each) + "\n";
  for (const char c : body) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`');
  return fence + language + "\n" + body + fence + "\n";
}

std::string md_cell(const Cell& cell) {
  const auto shown = md(cell_text(cell, report::glyphs(true)));
  const auto* word = std::get_if<Word>(&cell);
  return word && word->tone == Tone::strong && !shown.empty() ? "**" + shown + "**" : shown;
}

// Of a row of an outline; no-break spaces, of which a table keeps all.
std::string indent_of(int depth) {
  std::string out;
  for (int level = 1; level < depth; ++level) out += "\u00a0\u00a0\u00a0";
  return depth > 0 ? out + "└ " : out;
}

std::string titled(const std::string& title) {
  return title.empty() ? "" : "**" + md(title) + "**\n\n";
}

std::string noted(const std::string& note) {
  return note.empty() ? "" : "\n" + prose(note) + "\n";
}

std::string md_item(const Text& text) {
  if (text.kind == Text::Kind::command) return fenced({text.paragraph}, "sh");
  if (text.kind == Text::Kind::log) return fenced(lines_of(text), "");
  return (text.kind == Text::Kind::warning ? "> **Warning:** " + md(text.paragraph) : prose(text.paragraph)) + "\n";
}

std::string md_item(const Table& table) {
  return titled(table.title) + markdown_table(table) + noted(table.note);
}

std::string md_item(const Bars& bars) {
  return md_item(bars.table ? *bars.table : bars_table(bars));
}

std::string md_item(const Facts& facts) {
  std::string out = titled(facts.title);
  for (const auto& fact : facts.facts)
    out +=
        fmt::format("- {}: {}\n", md(fact.name), fact.is_command ? escape::markdown_code(fact.value) : md(fact.value));
  return out;
}

std::string md_item(const Details&) {
  return "";  // of a page alone
}

std::string md_item(const Figure& figure) {
  if (figure.table) return md_item(*figure.table);
  std::string out = titled(figure.title);
  if (has_labels(figure)) return out + shown_elsewhere(figure) + ".\n" + noted(figure.note);
  bool any = false;
  for (const auto& panel : figure.panels) {
    const auto table = places_table(panel, kMostPlaces);
    if (any) out += "\n";
    any = true;
    if (!panel.title.empty()) out += prose(panel.title) + ":\n\n";
    out += table.columns.size() < 2 ? "Nothing to draw: no line has a point.\n" : markdown_table(table);
  }
  if (!any) out += "Nothing to draw.\n";
  return out + noted(figure.note);
}

std::string md_item(const HeatMap& map) {
  const auto scale = shown_title(map.scale);
  return titled(scale.empty() ? map.title : map.title + ": " + scale) + markdown_table(fields_table(map)) +
         noted(map.note);
}

std::string md_item(const Surface& surface) {
  return titled(shown_title(surface)) + markdown_table(layers_table(surface)) + noted(surface.note);
}

std::string md_facts(const std::vector<Fact>& all) {
  Table facts{.columns = {{.title = "what", .align = Align::left}, {.title = "value", .align = Align::left}}};
  for (const auto& fact : all) facts.rows.push_back({fact.name, fact.value});
  return markdown_table(facts);
}

// `rank`: the signs of its heading.
std::string md_document(const Document& document, const std::string& rank) {
  std::string out = rank + " " + md(document.title) + "\n";
  if (!document.summary.empty()) out += "\n**" + md(document.summary) + "**\n";
  if (!document.subtitle.empty()) out += "\n" + prose(document.subtitle) + "\n";
  for (const auto& section : document.sections) {
    if (section.is_detail) continue;
    if (!section.title.empty()) out += "\n" + rank + "# " + md(section.title) + "\n";
    for (const auto& item : section.items)
      if (!is_detail(item)) out += "\n" + std::visit([](const auto& each) { return md_item(each); }, item);
  }
  for (const auto& part : document.parts) out += "\n" + md_document(part, rank + "#");
  if (!document.facts.empty()) out += "\n" + rank + "# Environment\n\n" + md_facts(document.facts);
  return out;
}

}  // namespace

std::string markdown_table(const Table& table) {
  if (table.columns.empty()) return "";
  std::string out = "|", rule = "|";
  for (const auto& column : table.columns) {
    out += " " + md(shown_title(column)) + " |";
    rule += column.align == Align::right ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    out += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const auto& cell = cell_of(table.rows[r], c);
      const auto shown = md_cell(cell), why = reason_of(cell);
      // Cells side by side that are absent for one reason say it once.
      const bool repeated = c > 0 && reason_of(cell_of(table.rows[r], c - 1)) == why;
      const auto start = c == 0 && r < table.depths.size() ? indent_of(table.depths[r]) : std::string();
      out += " " + start + (!shown.empty() ? shown : why.empty() || repeated ? "–" : "– (" + md(why) + ")") + " |";
    }
    out += "\n";
  }
  return out;
}

std::string render_markdown(const Document& document) {
  return md_document(document, "#");
}

}  // namespace strata::document
