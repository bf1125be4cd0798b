// SPDX-License-Identifier: Apache-2.0
#include "report/render/json.hpp"

#include <cmath>

#include "common/escape.hpp"
#include "report/render/shown.hpp"

namespace strata::document {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson finite_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson values_json(const std::vector<double>& values) {
  auto all = OrderedJson::array();
  for (const double value : values) all.push_back(finite_or_null(value));
  return all;
}

OrderedJson cell_json(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<Number>(&cell)) {
    OrderedJson one{{"value", finite_or_null(number->value)}};
    if (number->low) one["low"] = finite_or_null(*number->low);
    if (number->high) one["high"] = finite_or_null(*number->high);
    return one;
  }
  const auto why = reason_of(cell);
  return why.empty() ? OrderedJson(nullptr) : OrderedJson{{"value", nullptr}, {"reason", why}};
}

OrderedJson axis_json(const Axis& axis) {
  OrderedJson one{
      {"title", axis.title}, {"unit", axis.unit}, {"logarithmic", axis.logarithmic}, {"format", name_of(axis.format)}};
  if (!axis.categories.empty()) one["categories"] = axis.categories;
  return one;
}

OrderedJson line_json(const Line& line) {
  OrderedJson one{{"name", line.name}, {"group", line.group.empty() ? line.name : line.group}};
  if (line.dashed) one["dashed"] = true;
  if (line.marks_only) one["marks_only"] = true;
  one["x"] = values_json(line.x);
  one["y"] = values_json(line.y);
  if (!line.low.empty() && !line.high.empty()) one["low"] = values_json(line.low), one["high"] = values_json(line.high);
  return one;
}

OrderedJson item_json(const Text& text) {
  const char* kind = text.kind == Text::Kind::warning   ? "warning"
                     : text.kind == Text::Kind::command ? "command"
                                                        : "text";
  return {{"kind", kind}, {"paragraph", text.paragraph}};
}

OrderedJson item_json(const Table& table) {
  OrderedJson one{{"kind", "table"}, {"id", table.id}, {"title", table.title}};
  auto& columns = one["columns"] = OrderedJson::array();
  for (const auto& column : table.columns)
    columns.push_back({{"id", column.id}, {"title", column.title}, {"unit", column.unit}});
  auto& rows = one["rows"] = OrderedJson::array();
  for (const auto& row : table.rows) {
    auto cells = OrderedJson::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c) cells[table.columns[c].id] = cell_json(cell_of(row, c));
    rows.push_back(std::move(cells));
  }
  one["note"] = table.note;
  return one;
}

OrderedJson item_json(const Figure& figure) {
  OrderedJson one{{"kind", "figure"}, {"id", figure.id}, {"title", figure.title}};
  auto& panels = one["panels"] = OrderedJson::array();
  for (const auto& panel : figure.panels) {
    auto lines = OrderedJson::array();
    for (const auto& line : panel.lines) lines.push_back(line_json(line));
    panels.push_back(
        {{"title", panel.title}, {"x", axis_json(panel.x)}, {"y", axis_json(panel.y)}, {"lines", std::move(lines)}});
  }
  one["note"] = figure.note;
  return one;
}

OrderedJson item_json(const HeatMap& map) {
  auto values = OrderedJson::array();
  for (const auto& row : map.values) values.push_back(values_json(row));
  OrderedJson one{{"kind", "heat_map"},
                  {"id", map.id},
                  {"title", map.title},
                  {"row_title", map.row_title},
                  {"column_title", map.column_title},
                  {"rows", map.rows},
                  {"columns", map.columns},
                  {"values", std::move(values)},
                  {"scale", axis_json(map.scale)}};
  if (!map.labels.empty()) one["labels"] = map.labels;
  if (map.middle) one["middle"] = finite_or_null(*map.middle);
  one["note"] = map.note;
  return one;
}

}  // namespace

nlohmann::ordered_json to_json(const Document& document) {
  OrderedJson one{{"schema", "strata.document/1"},
                  {"title", document.title},
                  {"subtitle", document.subtitle},
                  {"summary", document.summary}};
  auto& sections = one["sections"] = OrderedJson::array();
  for (const auto& section : document.sections) {
    auto items = OrderedJson::array();
    for (const auto& each : section.items)
      items.push_back(std::visit([](const auto& item) { return item_json(item); }, each));
    sections.push_back({{"id", section.id}, {"title", section.title}, {"items", std::move(items)}});
  }
  auto& facts = one["facts"] = OrderedJson::array();
  for (const auto& fact : document.facts) facts.push_back({{"name", fact.name}, {"value", fact.value}});
  return one;
}

std::string render_json(const Document& document) {
  return escape::json(to_json(document).dump(2, ' ', false, OrderedJson::error_handler_t::replace)) + "\n";
}

}  // namespace strata::document
