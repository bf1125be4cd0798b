// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/escape.hpp"
#include "report/render/cell_text.hpp"
#include "report/render/points.hpp"
#include "report/render/render.hpp"
#include "report/render/sparkline.hpp"
#include "report/render/text_table.hpp"

namespace strata::document {
namespace {

constexpr std::size_t kLeastWidth = 40, kMostSpark = 48, kLeastSpark = 8, kMostNames = 32, kLeastNames = 8,
                      kMostFields = 160;
constexpr const char *kBold = "1", *kDim = "2", *kYellow = "33";

// Writes lines; every text of the document goes through shown() or text_table().
class TerminalWriter {
 public:
  explicit TerminalWriter(const report::TerminalStyle& style)
      : glyphs_(report::glyphs(style.unicode)),
        width_(std::max<std::size_t>(kLeastWidth, static_cast<std::size_t>(std::max(style.width, 0)))),
        colour_(style.colour),
        unicode_(style.unicode) {}

  std::string write(const Document& document);
  std::string write(const std::vector<Section>& sections);

 private:
  void document_lines(const Document& document);
  void section_lines(const Section& section);
  void facts_lines(const std::vector<Fact>& facts);

  std::string painted(const char* code, const std::string& shown) const {
    return colour_ && !shown.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, shown) : shown;
  }
  void line(const std::string& shown, const char* code = nullptr) {
    out_ += (code ? painted(code, shown) : shown) + "\n";
  }
  void paragraph(const std::string& text, const char* code = nullptr, const std::string& indent = "") {
    if (text.empty()) return;
    for (const auto& text_line : fold(escape::one_line(text), width_ - indent.size())) line(indent + text_line, code);
  }
  void heading(const std::string& title);
  void labelled(const std::string& label, const std::string& text, std::size_t label_width, const char* code = kDim);
  void item(const Text& text);
  void item(const Table& table);
  void item(const Figure& figure);
  void item(const Bars& bars);
  void item(const HeatMap& map);
  void item(const Surface& surface);
  void item(const Facts& facts);
  void item(const Details&) {}  // of a page alone
  void table_lines(const Table& table);
  void reasons(const Table& table);
  std::string first_and_last(const Line& line, const Axis& axis) const;
  void panel_lines(const Panel& panel);

  const report::Glyphs& glyphs_;
  std::size_t width_;
  bool colour_, unicode_;
  std::string out_;
};

// A rule, so that sections are seen also where nothing is bold.
void TerminalWriter::heading(const std::string& title) {
  auto shown = escape::one_line(title);
  if (shown.empty()) return;
  std::string rule;
  for (auto used = report::width_of(shown) + 4; used < width_; ++used) rule += glyphs_.rule;
  for (const auto& text_line : fold(shown, width_ - 3)) {
    line(painted(kDim, glyphs_.rule + glyphs_.rule) + " " + painted(kBold, text_line) + " " + painted(kDim, rule));
    rule.clear();
  }
}

void TerminalWriter::labelled(const std::string& label, const std::string& text, std::size_t label_width,
                              const char* code) {
  const auto lines = fold(escape::one_line(text), width_ - label_width);
  auto labels = fold(escape::one_line(label), label_width - 1);
  for (std::size_t i = 0; i < std::max(lines.size(), labels.size()); ++i)
    line(painted(code, padded_to(i < labels.size() ? labels[i] : "", label_width, Align::left)) +
         (i < lines.size() ? lines[i] : ""));
}

void TerminalWriter::item(const Text& text) {
  switch (text.kind) {
    case Text::Kind::normal:
      return paragraph(text.paragraph);
    case Text::Kind::warning:
      return labelled("Warning", text.paragraph, 9, kYellow);
    case Text::Kind::command:
      return line("  " + escape::one_line(text.paragraph));
    case Text::Kind::log:
      for (const auto& each : lines_of(text)) line("  " + escape::one_line(each));
  }
}

void TerminalWriter::table_lines(const Table& table) {
  if (table.rows.empty()) return line("  no rows", kDim);
  bool first = true;
  for (const auto& part : text_table(table, width_ - 2, glyphs_).parts) {
    if (!first) line("");
    first = false;
    for (const auto& text_line : part.header) line("  " + text_line, kDim);
    for (const auto& row : part.rows) line("  " + row);
  }
}

// In the table they would widen a column of numbers.
void TerminalWriter::reasons(const Table& table) {
  for (const auto& row : table.rows) {
    const auto name = cell_text(cell_of(row, 0), glyphs_);
    std::vector<std::pair<std::string, std::vector<std::size_t>>> columns_by_reason;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const auto why = reason_of(cell_of(row, c));
      if (why.empty()) continue;
      const auto known = std::find_if(columns_by_reason.begin(), columns_by_reason.end(),
                                      [&](const auto& element) { return element.first == why; });
      if (known != columns_by_reason.end())
        known->second.push_back(c);
      else
        columns_by_reason.push_back({why, {c}});
    }
    // What failed as a whole has the same reason in most of its columns, whose names would say nothing.
    for (const auto& [why, columns] : columns_by_reason) {
      const bool alone = columns.size() == 1 && columns[0] > 0;
      const auto where = alone ? name + ", " + table.columns[columns[0]].title : name;
      paragraph(glyphs_.missing + " " + (where.empty() ? "" : where + ": ") + why, nullptr, "  ");
    }
  }
}

void TerminalWriter::item(const Table& table) {
  paragraph(table.title, kBold);
  table_lines(table);
  reasons(table);
  paragraph(table.note, kDim, "  ");
}

void TerminalWriter::item(const Bars& bars) {
  item(bars.table ? *bars.table : bars_table(bars));
}

void TerminalWriter::item(const Facts& facts) {
  paragraph(facts.title, kBold);
  facts_lines(facts.facts);
}

void TerminalWriter::item(const HeatMap& map) {
  const auto scale = shown_title(map.scale);
  paragraph(scale.empty() ? map.title : map.title + ": " + scale, kBold);
  // A map is read by its colours: of a large one the numbers are a wall.
  if (map.rows.size() * map.columns.size() <= kMostFields)
    table_lines(fields_table(map));
  else
    line(fmt::format("  {} by {} fields, drawn in the HTML report", map.rows.size(), map.columns.size()), kDim);
  paragraph(map.note, kDim, "  ");
}

void TerminalWriter::item(const Surface& surface) {
  paragraph(shown_title(surface), kBold);
  const auto rows = surface.rows.size(), columns = surface.columns.size(), layers = surface.layers.size();
  if (rows * columns * layers <= kMostFields)
    table_lines(layers_table(surface));
  else
    line(fmt::format("  {} by {} fields of {} levels, drawn in the HTML report", rows, columns, layers), kDim);
  paragraph(surface.note, kDim, "  ");
}

std::string TerminalWriter::first_and_last(const Line& line, const Axis& axis) const {
  auto points = points_of(line);
  std::erase_if(points, [](const Point& point) { return !std::isfinite(point.y); });
  if (points.empty()) return glyphs_.missing;
  const auto first = number_text(points.front().y, axis.format);
  if (points.size() == 1) return first;
  return first + (unicode_ ? " → " : " to ") + number_text(points.back().y, axis.format);
}

// "  eager  ▇▅▃▂▁▁  2.31 to 0.0412", under a line that says what the axes are.
void TerminalWriter::panel_lines(const Panel& panel) {
  const auto x = range_of_x(panel), y = range_of_y(panel);
  const auto axis_words = [&](const Axis& axis, const std::optional<Range>& range) {
    const auto title = shown_title(axis);
    const auto ends = range ? shown_place(range->low, axis) + " to " + shown_place(range->high, axis) : "";
    return title.empty() ? ends : ends.empty() ? title : title + " " + ends;
  };
  const auto head = panel.title.empty() ? "" : panel.title + ": ";
  if (!x || !y) return paragraph(head + "nothing to draw: no line has a point", nullptr, "  ");
  paragraph(head + axis_words(panel.y, y) + "; " + axis_words(panel.x, x), kDim, "  ");
  std::vector<std::string> ends;
  std::size_t names = 0, widest = 0, most = 1;
  for (const auto& line : panel.lines) {
    most = std::max(most, points_of(line).size());
    ends.push_back(first_and_last(line, panel.y));
    names = std::max(names, report::width_of(escape::one_line(line.name)));
    widest = std::max(widest, report::width_of(ends.back()));
  }
  const auto room = width_ - std::min(width_, widest + 6);  // without gaps and values
  names = std::min({names, kMostNames, std::max(kLeastNames, room - std::min(room, kLeastSpark))});
  const auto spark =
      std::min({std::max(kLeastSpark, room - std::min(room, names)), kMostSpark, std::max(most, kLeastSpark)});
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto name = shortened(escape::one_line(panel.lines[i].name), names, glyphs_.ellipsis);
    line("  " + padded_to(name, names, Align::left) + "  " + sparkline(panel.lines[i], panel, spark, unicode_) + "  " +
         ends[i]);
  }
}

void TerminalWriter::item(const Figure& figure) {
  if (figure.table) return item(*figure.table);
  paragraph(figure.title, kBold);
  if (has_labels(figure)) {
    line("  " + shown_elsewhere(figure), kDim);
    return paragraph(figure.note, kDim, "  ");
  }
  if (figure.panels.empty()) line("  nothing to draw", kDim);
  for (const auto& panel : figure.panels) panel_lines(panel);
  paragraph(figure.note, kDim, "  ");
}

void TerminalWriter::facts_lines(const std::vector<Fact>& facts) {
  std::size_t names = 0;
  for (const auto& fact : facts) names = std::max(names, report::width_of(escape::one_line(fact.name)));
  const auto width = std::min<std::size_t>(names, 18) + 2;
  for (const auto& fact : facts)
    if (fact.is_command)
      line(painted(kDim, padded_to(escape::one_line(fact.name), width, Align::left)) + escape::one_line(fact.value));
    else
      labelled(fact.name, fact.value, width);
}

void TerminalWriter::section_lines(const Section& section) {
  if (section.is_detail) return;
  heading(section.title);
  bool first = true;
  const Text* before = nullptr;
  for (const auto& section_item : section.items) {
    if (is_detail(section_item)) continue;
    // Texts of one kind stand together.
    const auto* text = std::get_if<Text>(&section_item);
    if (!first && !(text && before && text->kind == before->kind)) line("");
    std::visit([&](const auto& each) { item(each); }, section_item);
    first = false;
    before = text;
  }
}

void TerminalWriter::document_lines(const Document& document) {
  paragraph(document.summary, kBold);
  paragraph(document.subtitle, kDim);
  for (const auto& section : document.sections) {
    if (section.is_detail) continue;
    line("");
    section_lines(section);
  }
  for (const auto& part : document.parts) {
    line("");
    heading(part.title);
    document_lines(part);
  }
  if (document.facts.empty()) return;
  line("");
  facts_lines(document.facts);
}

std::string TerminalWriter::write(const Document& document) {
  document_lines(document);
  return std::move(out_);
}

std::string TerminalWriter::write(const std::vector<Section>& sections) {
  for (const auto& section : sections) {
    if (section.is_detail) continue;
    if (!out_.empty()) line("");
    section_lines(section);
  }
  return std::move(out_);
}

}  // namespace

std::string render_terminal(const Document& document, const report::TerminalStyle& style) {
  return TerminalWriter(style).write(document);
}

std::string render_terminal(const std::vector<Section>& sections, const report::TerminalStyle& style) {
  return TerminalWriter(style).write(sections);
}

}  // namespace strata::document
