// SPDX-License-Identifier: Apache-2.0
#include "report/render/text_table.hpp"

#include <algorithm>
#include <numeric>

#include "common/escape.hpp"
#include "report/render/cell_text.hpp"

namespace strata::document {
namespace {

constexpr std::size_t kGap = 2, kNarrowText = 14, kNarrowNumber = 28, kNarrowName = 24, kNarrowTitle = 6,
                      kWideTitle = 16;

struct TextColumn {
  std::string title;
  std::vector<std::string> cells;
  Align align = Align::left;
  std::size_t width = 0, least = 0;  // as wide as it wants to be; as narrow as it can be
};

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (const auto& line : report::wrap(text, 1)) longest = std::max(longest, report::width_of(line));
  return longest;
}

TextColumn text_column(const Table& table, std::size_t place, const report::Glyphs& glyphs) {
  const auto outline = place == 0 ? outline_of(table, glyphs) : std::vector<std::string>();
  TextColumn column{.title = escape::one_line(shown_title(table.columns[place])), .align = table.columns[place].align};
  column.width = report::width_of(column.title);
  column.least = std::min(column.width, std::clamp(longest_word(column.title), kNarrowTitle, kWideTitle));
  for (const auto& row : table.rows) {
    const auto& cell = cell_of(row, place);
    auto shown = escape::one_line(cell_text(cell, glyphs));
    if (shown.empty()) shown = glyphs.missing;
    if (!outline.empty()) shown.insert(0, outline[column.cells.size()]);
    const auto width = report::width_of(shown);
    column.width = std::max(column.width, width);
    const bool is_text = std::holds_alternative<std::string>(cell) || std::holds_alternative<Word>(cell);
    // What stands to the right is a number in words of its own, as "-6.97 ms (-8.07 to -5.87)".
    const auto narrow = place == 0 ? kNarrowName : column.align == Align::right ? kNarrowNumber : kNarrowText;
    column.least = std::max(column.least, is_text && outline.empty() ? std::min(width, narrow) : width);
    column.cells.push_back(std::move(shown));
  }
  return column;
}

// Of the first `columns` characters.
std::size_t bytes_of(const std::string& text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && ++used > columns) break;
  }
  return end;
}

// Where a word that is too long is broken: behind a sign in the second half of the line, or else where it is full.
std::size_t break_of(const std::string& word, std::size_t columns) {
  const auto full = bytes_of(word, columns);
  const auto sign = word.find_last_of("-@/_.,:=", full - 1);
  return sign != std::string::npos && sign >= full / 2 ? sign + 1 : full;
}

// Of what is left beside the widest of the other columns, so that each of them has a place.
void limit_names(std::vector<TextColumn>& columns, std::size_t width) {
  std::size_t widest = 0;
  for (std::size_t c = 1; c < columns.size(); ++c) widest = std::max(widest, columns[c].least + kGap);
  const auto room = width > widest ? width - widest : 0;
  columns[0].least = std::min(columns[0].least, std::max<std::size_t>(room, 8));
}

using Chosen = std::vector<const TextColumn*>;

std::size_t width_with(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

// The widest that can be narrower gives way, a column of the terminal at a time.
std::vector<std::size_t> fitting(const Chosen& columns, std::size_t width) {
  std::vector<std::size_t> widths;
  for (const auto* column : columns) widths.push_back(column->width);
  while (width_with(widths) > width) {
    std::size_t* widest = nullptr;
    for (std::size_t c = 0; c < widths.size(); ++c)
      if (widths[c] > columns[c]->least && (!widest || widths[c] > *widest)) widest = &widths[c];
    if (!widest) break;
    --*widest;
  }
  return widths;
}

// The first column and as many others as there is room for; each of the others in one part.
std::vector<Chosen> parts_of(const std::vector<TextColumn>& columns, std::size_t width) {
  std::vector<Chosen> parts{{&columns[0]}};
  std::size_t used = columns[0].least;
  for (std::size_t c = 1; c < columns.size(); ++c) {
    if (used + kGap + columns[c].least > width && parts.back().size() > 1) {
      parts.push_back({&columns[0]});
      used = columns[0].least;
    }
    parts.back().push_back(&columns[c]);
    used += kGap + columns[c].least;
  }
  return parts;
}

std::vector<std::string> row_lines(const Chosen& columns, const std::vector<std::size_t>& widths,
                                   const std::vector<std::string>& cells) {
  std::vector<std::vector<std::string>> folded;
  std::size_t height = 1;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    folded.push_back(fold(cells[c], widths[c]));
    height = std::max(height, folded.back().size());
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < height; ++i) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c)
      line += (c ? std::string(kGap, ' ') : "") +
              padded_to(i < folded[c].size() ? folded[c][i] : "", widths[c], columns[c]->align);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string padded_to(const std::string& text, std::size_t width, Align align) {
  const auto used = report::width_of(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return align == Align::right ? space + text : text + space;
}

std::string shortened(const std::string& text, std::size_t width, const std::string& ellipsis) {
  if (report::width_of(text) <= width) return text;
  return text.substr(0, bytes_of(text, width - std::min(width, report::width_of(ellipsis)))) + ellipsis;
}

std::vector<std::string> fold(const std::string& text, std::size_t width) {
  if (report::width_of(text) <= width) return {text};  // as it is: an outline has spaces that mean something
  std::vector<std::string> lines;
  for (auto& line : report::wrap(text, width)) {
    while (report::width_of(line) > std::max<std::size_t>(width, 1)) {
      const auto end = break_of(line, std::max<std::size_t>(width, 1));
      lines.push_back(line.substr(0, end));
      line.erase(0, end);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

TextTable text_table(const Table& table, std::size_t width, const report::Glyphs& glyphs) {
  TextTable out;
  if (table.columns.empty()) return out;
  std::vector<TextColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) columns.push_back(text_column(table, c, glyphs));
  limit_names(columns, width);
  for (const auto& chosen : parts_of(columns, width)) {
    const auto widths = fitting(chosen, width);
    std::vector<std::string> titles;
    for (const auto* column : chosen) titles.push_back(column->title);
    TextTable::Part part{.header = row_lines(chosen, widths, titles)};
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      std::vector<std::string> cells;
      for (const auto* column : chosen) cells.push_back(column->cells[r]);
      const auto lines = row_lines(chosen, widths, cells);
      part.rows.insert(part.rows.end(), lines.begin(), lines.end());
    }
    out.parts.push_back(std::move(part));
  }
  return out;
}

}  // namespace strata::document
