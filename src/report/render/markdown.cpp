// SPDX-License-Identifier: Apache-2.0
#include "report/render/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/escape.hpp"
#include "report/render/points.hpp"
#include "report/render/shown.hpp"

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

std::string fenced(const std::string& text) {
  const auto line = escape::one_line(text);
  std::size_t longest = 2, run = 0;
  for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`');
  return fence + "sh\n" + line + "\n" + fence + "\n";
}

std::string md_table(const Table& table) {
  if (table.columns.empty()) return "";
  std::string out = "|", rule = "|";
  for (const auto& column : table.columns) {
    out += " " + md(shown_title(column)) + " |";
    rule += column.align == Align::right ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const auto& cell = cell_of(row, c);
      const auto shown = shown_cell(cell, report::glyphs(true)), why = reason_of(cell);
      out += " " + (!shown.empty() ? md(shown) : why.empty() ? "–" : "– (" + md(why) + ")") + " |";
    }
    out += "\n";
  }
  return out;
}

std::string titled(const std::string& title) {
  return title.empty() ? "" : "**" + md(title) + "**\n\n";
}

std::string noted(const std::string& note) {
  return note.empty() ? "" : "\n" + prose(note) + "\n";
}

std::string md_item(const Text& text) {
  if (text.kind == Text::Kind::command) return fenced(text.paragraph);
  return (text.kind == Text::Kind::warning ? "> **Warning:** " + md(text.paragraph) : prose(text.paragraph)) + "\n";
}

std::string md_item(const Table& table) {
  return titled(table.title) + md_table(table) + noted(table.note);
}

std::string md_item(const Figure& figure) {
  std::string out = titled(figure.title);
  if (has_labels(figure)) return out + shown_elsewhere(figure) + ".\n" + noted(figure.note);
  bool any = false;
  for (const auto& panel : figure.panels) {
    const auto table = places_table(panel, kMostPlaces);
    if (any) out += "\n";
    any = true;
    if (!panel.title.empty()) out += prose(panel.title) + ":\n\n";
    out += table.columns.size() < 2 ? "Nothing to draw: no line has a point.\n" : md_table(table);
  }
  if (!any) out += "Nothing to draw.\n";
  return out + noted(figure.note);
}

std::string md_item(const HeatMap& map) {
  const auto scale = shown_title(map.scale);
  return titled(scale.empty() ? map.title : map.title + ": " + scale) + md_table(fields_table(map)) + noted(map.note);
}

std::string md_item(const Surface& surface) {
  return titled(shown_title(surface)) + md_table(layers_table(surface)) + noted(surface.note);
}

}  // namespace

std::string render_markdown(const Document& document) {
  std::string out = "# " + md(document.title) + "\n";
  if (!document.summary.empty()) out += "\n**" + md(document.summary) + "**\n";
  if (!document.subtitle.empty()) out += "\n" + prose(document.subtitle) + "\n";
  for (const auto& section : document.sections) {
    out += "\n## " + md(section.title) + "\n";
    for (const auto& item : section.items)
      if (!is_detail(item)) out += "\n" + std::visit([](const auto& each) { return md_item(each); }, item);
  }
  if (document.facts.empty()) return out;
  Table facts{.columns = {{.title = "what", .align = Align::left}, {.title = "value", .align = Align::left}}};
  for (const auto& fact : document.facts) facts.rows.push_back({fact.name, fact.value});
  return out + "\n## Environment\n\n" + md_table(facts);
}

}  // namespace strata::document
