// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "common/escape.hpp"
#include "report/render/cell_text.hpp"
#include "report/render/render.hpp"

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
  if (const auto* word = std::get_if<Word>(&cell)) return word->text;
  if (const auto* number = std::get_if<Number>(&cell)) {
    OrderedJson object{{"value", finite_or_null(number->value)}};
    if (number->low) object["low"] = finite_or_null(*number->low);
    if (number->high) object["high"] = finite_or_null(*number->high);
    if (!number->mark.empty()) object["mark"] = number->mark;
    return object;
  }
  const auto why = reason_of(cell);
  return why.empty() ? OrderedJson(nullptr) : OrderedJson{{"value", nullptr}, {"reason", why}};
}

// Nothing where an item has no alternative.
void add_choices(OrderedJson& item, const std::vector<Choice>& choices) {
  for (const auto& choice : choices) item["choices"].push_back({{"title", choice.title}, {"option", choice.option}});
}

OrderedJson axis_json(const Axis& axis) {
  OrderedJson object{
      {"title", axis.title}, {"unit", axis.unit}, {"logarithmic", axis.logarithmic}, {"format", name_of(axis.format)}};
  if (!axis.categories.empty()) object["categories"] = axis.categories;
  return object;
}

OrderedJson line_json(const Line& line) {
  OrderedJson object{{"name", line.name}, {"group", line.group.empty() ? line.name : line.group}};
  if (line.dashed) object["dashed"] = true;
  if (line.marks_only) object["marks_only"] = true;
  object["x"] = values_json(line.x);
  object["y"] = values_json(line.y);
  if (!line.labels.empty()) object["labels"] = line.labels;
  if (!line.low.empty() && !line.high.empty())
    object["low"] = values_json(line.low), object["high"] = values_json(line.high);
  return object;
}

OrderedJson item_json(const Text& text) {
  const char* kind = text.kind == Text::Kind::warning   ? "warning"
                     : text.kind == Text::Kind::command ? "command"
                     : text.kind == Text::Kind::log     ? "log"
                                                        : "text";
  return {{"kind", kind}, {"paragraph", text.paragraph}};
}

// Which kind of number a column has; null: texts alone, or numbers of several kinds.
OrderedJson format_of(const Table& table, std::size_t column) {
  std::optional<NumberFormat> format;
  for (const auto& row : table.rows) {
    const auto cell = cell_of(row, column);
    const auto* number = std::get_if<Number>(&cell);
    if (number == nullptr) continue;
    if (format && *format != number->format) return nullptr;
    format = number->format;
  }
  return format ? OrderedJson(name_of(*format)) : OrderedJson(nullptr);
}

OrderedJson item_json(const Table& table) {
  OrderedJson object{{"kind", "table"}, {"id", table.id}, {"title", table.title}};
  auto& columns = object["columns"] = OrderedJson::array();
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto& column = table.columns[c];
    columns.push_back(
        {{"id", column.id}, {"title", column.title}, {"unit", column.unit}, {"format", format_of(table, c)}});
  }
  auto& rows = object["rows"] = OrderedJson::array();
  for (const auto& row : table.rows) {
    auto cells = OrderedJson::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c) cells[table.columns[c].id] = cell_json(cell_of(row, c));
    rows.push_back(std::move(cells));
  }
  object["note"] = table.note;
  return object;
}

OrderedJson facts_json(const std::vector<Fact>& all) {
  auto facts = OrderedJson::array();
  for (const auto& fact : all) facts.push_back({{"name", fact.name}, {"value", fact.value}});
  return facts;
}

OrderedJson item_json(const Facts& facts) {
  return {{"kind", "facts"}, {"title", facts.title}, {"facts", facts_json(facts.facts)}};
}

OrderedJson items_json(const std::vector<Item>& items);

OrderedJson item_json(const Details& details) {
  return {{"kind", "details"}, {"title", details.title}, {"items", items_json(details.items)}};
}

OrderedJson parts_json(const std::vector<BarPart>& all) {
  auto parts = OrderedJson::array();
  for (const auto& part : all) parts.push_back({{"name", part.name}, {"values", values_json(part.values)}});
  return parts;
}

OrderedJson item_json(const Bars& bars) {
  return {{"kind", "bars"},
          {"id", bars.id},
          {"title", bars.title},
          {"rows", bars.rows},
          {"parts", parts_json(bars.parts)},
          {"marks", parts_json(bars.marks)},
          {"scale", axis_json(bars.scale)},
          {"note", bars.note}};
}

OrderedJson item_json(const Figure& figure) {
  OrderedJson object{{"kind", "figure"}, {"id", figure.id}, {"title", figure.title}};
  auto& panels = object["panels"] = OrderedJson::array();
  for (const auto& panel : figure.panels) {
    auto lines = OrderedJson::array();
    for (const auto& line : panel.lines) lines.push_back(line_json(line));
    panels.push_back(
        {{"title", panel.title}, {"x", axis_json(panel.x)}, {"y", axis_json(panel.y)}, {"lines", std::move(lines)}});
  }
  object["note"] = figure.note;
  add_choices(object, figure.choices);
  return object;
}

OrderedJson item_json(const HeatMap& map) {
  auto values = OrderedJson::array();
  for (const auto& row : map.values) values.push_back(values_json(row));
  OrderedJson object{{"kind", "heat_map"},
                     {"id", map.id},
                     {"title", map.title},
                     {"row_title", map.row_title},
                     {"column_title", map.column_title},
                     {"rows", map.rows},
                     {"columns", map.columns},
                     {"values", std::move(values)},
                     {"scale", axis_json(map.scale)}};
  if (!map.labels.empty()) object["labels"] = map.labels;
  if (map.middle) object["middle"] = finite_or_null(*map.middle);
  object["note"] = map.note;
  add_choices(object, map.choices);
  return object;
}

OrderedJson field_json(const SurfaceField& field) {
  OrderedJson object{{"value", finite_or_null(field.number.value)}};
  if (field.number.low) object["low"] = finite_or_null(*field.number.low);
  if (field.number.high) object["high"] = finite_or_null(*field.number.high);
  if (!field.outcome.empty()) object["outcome"] = field.outcome;
  if (!field.label.empty()) object["label"] = field.label;
  return object;
}

OrderedJson item_json(const Surface& surface) {
  auto layers = OrderedJson::array();
  for (const auto& layer : surface.layers) {
    auto fields = OrderedJson::array();
    for (const auto& row : layer.fields) {
      fields.push_back(OrderedJson::array());
      for (const auto& field : row) fields.back().push_back(field_json(field));
    }
    layers.push_back({{"name", layer.name}, {"fields", std::move(fields)}});
  }
  OrderedJson object{{"kind", "surface"},
                     {"id", surface.id},
                     {"title", surface.title},
                     {"row_title", surface.row_title},
                     {"column_title", surface.column_title},
                     {"rows", surface.rows},
                     {"columns", surface.columns},
                     {"layers", std::move(layers)},
                     {"scale", axis_json(surface.scale)}};
  if (surface.middle) object["middle"] = finite_or_null(*surface.middle);
  object["note"] = surface.note;
  add_choices(object, surface.choices);
  return object;
}

OrderedJson items_json(const std::vector<Item>& items) {
  auto all = OrderedJson::array();
  for (const auto& each : items) all.push_back(std::visit([](const auto& item) { return item_json(item); }, each));
  return all;
}

// What a document and a part of one have in common.
void add_content(OrderedJson& object, const Document& document) {
  object["title"] = document.title;
  object["subtitle"] = document.subtitle;
  object["summary"] = document.summary;
  auto& sections = object["sections"] = OrderedJson::array();
  for (const auto& section : document.sections)
    sections.push_back({{"id", section.id}, {"title", section.title}, {"items", items_json(section.items)}});
  object["facts"] = facts_json(document.facts);
  for (const auto& part : document.parts) {
    OrderedJson own{{"id", part.id}};
    add_content(own, part);
    object["parts"].push_back(std::move(own));
  }
}

}  // namespace

nlohmann::ordered_json to_json(const Document& document) {
  OrderedJson object{{"schema", "strata.document/1"}};
  add_content(object, document);
  return object;
}

std::string render_json(const Document& document) {
  return escape::json(to_json(document).dump(2, ' ', false, OrderedJson::error_handler_t::replace)) + "\n";
}

}  // namespace strata::document
