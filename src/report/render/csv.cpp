// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/render/cell_text.hpp"
#include "report/render/points.hpp"
#include "report/render/render.hpp"
#include "report/table.hpp"

namespace strata::document {
namespace {

using Fields = std::vector<std::string>;

struct Grid {
  std::string id;
  Fields header;
  std::vector<Fields> rows;
};

// The shortest digits that read back as the same number.
std::string exact(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

using report::csv_line;

template <class Has>
bool any_cell(const Table& table, std::size_t column, const Has& has) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [&](const std::vector<Cell>& row) { return has(cell_of(row, column)); });
}

bool has_interval(const Cell& cell) {
  const auto* number = std::get_if<Number>(&cell);
  return number && (number->low || number->high);
}

void add_column(Grid& grid, const Table& table, std::size_t column) {
  const auto& id = table.columns[column].id;
  const auto add = [&](const std::string& name, const auto& field) {
    grid.header.push_back(name);
    for (std::size_t r = 0; r < table.rows.size(); ++r) grid.rows[r].push_back(field(cell_of(table.rows[r], column)));
  };
  add(id, [](const Cell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    if (const auto* word = std::get_if<Word>(&cell)) return word->text;
    const auto* number = std::get_if<Number>(&cell);
    return number ? exact(number->value) : "";
  });
  if (any_cell(table, column, has_interval)) {
    static constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
    const auto end = [](const Cell& cell, std::optional<double> Number::*which) {
      const auto* number = std::get_if<Number>(&cell);
      return number ? exact((number->*which).value_or(nothing)) : "";
    };
    add(id + "_low", [&](const Cell& cell) { return end(cell, &Number::low); });
    add(id + "_high", [&](const Cell& cell) { return end(cell, &Number::high); });
  }
  if (any_cell(table, column, [](const Cell& cell) { return !reason_of(cell).empty(); }))
    add(id + "_reason", reason_of);
}

// Of what is no table, and of Details, whose items have grids of their own.
template <class Other>
std::optional<Grid> grid_of(const Other&) {
  return std::nullopt;
}

std::optional<Grid> grid_of(const Table& table) {
  Grid grid{.id = table.id, .rows = std::vector<Fields>(table.rows.size())};
  for (std::size_t c = 0; c < table.columns.size(); ++c) add_column(grid, table, c);
  return grid;
}

std::optional<Grid> grid_of(const Figure& figure) {
  Grid grid{.id = figure.id, .header = {"panel", "line", "x", "y", "low", "high"}};
  const bool labelled = has_labels(figure);
  if (labelled) grid.header.push_back("point");
  for (const auto& panel : figure.panels)
    for (const auto& line : panel.lines)
      for (const auto& point : points_of(line)) {
        const auto x = panel.x.categories.empty() ? exact(point.x) : shown_place(point.x, panel.x);
        grid.rows.push_back({panel.title, line.name, x, exact(point.y), point.low ? exact(*point.low) : "",
                             point.high ? exact(*point.high) : ""});
        if (labelled) grid.rows.back().push_back(point.label);
      }
  return grid;
}

std::optional<Grid> grid_of(const Bars& bars) {
  return grid_of(bars_table(bars));
}

std::optional<Grid> grid_of(const HeatMap& map) {
  Grid grid{.id = map.id, .header = {"row", "column", "value"}};
  for (std::size_t r = 0; r < std::min(map.rows.size(), map.values.size()); ++r)
    for (std::size_t c = 0; c < std::min(map.columns.size(), map.values[r].size()); ++c)
      if (const auto* label = label_of(map, r, c))
        grid.rows.push_back({map.rows[r], map.columns[c], *label});
      else
        grid.rows.push_back({map.rows[r], map.columns[c], exact(map.values[r][c])});
  return grid;
}

std::optional<Grid> grid_of(const Surface& surface) {
  Grid grid{.id = surface.id, .header = {"layer", "row", "column", "value", "low", "high", "outcome"}};
  for (const auto& layer : surface.layers)
    for (std::size_t r = 0; r < std::min(surface.rows.size(), layer.fields.size()); ++r)
      for (std::size_t c = 0; c < std::min(surface.columns.size(), layer.fields[r].size()); ++c) {
        const auto& [number, outcome, label] = layer.fields[r][c];
        grid.rows.push_back({layer.name, surface.rows[r], surface.columns[c], exact(number.value),
                             number.low ? exact(*number.low) : "", number.high ? exact(*number.high) : "", outcome});
      }
  return grid;
}

}  // namespace

std::string render_csv(const Document& document) {
  std::string out;
  for_each_item(document, [&](const Item& item, const std::string& part) {
    auto grid = std::visit([](const auto& each) { return grid_of(each); }, item);
    if (!grid) return;
    if (!out.empty()) out += "\n";
    Fields names{"table"}, values{part.empty() ? grid->id : part + "-" + grid->id};
    for (const auto& mark : document.marks) {
      names.push_back(mark.name);
      values.push_back(mark.value);
    }
    grid->header.insert(grid->header.begin(), names.begin(), names.end());
    out += csv_line(grid->header);
    for (auto& row : grid->rows) {
      row.insert(row.begin(), values.begin(), values.end());
      out += csv_line(row);
    }
  });
  return out;
}

}  // namespace strata::document
