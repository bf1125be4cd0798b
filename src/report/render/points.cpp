// SPDX-License-Identifier: Apache-2.0
#include "report/render/points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/render/cell_text.hpp"

namespace strata::document {
namespace {

// At most `most` places in 0 ... size-1, evenly, the first and the last among them.
std::vector<std::size_t> evenly(std::size_t size, std::size_t most) {
  std::vector<std::size_t> places;
  const auto number = std::min(size, most);
  for (std::size_t i = 0; i < number; ++i)
    places.push_back(
        number < 2 ? 0
                   : static_cast<std::size_t>(std::llround(static_cast<double>(i) * static_cast<double>(size - 1) /
                                                           static_cast<double>(number - 1))));
  return places;
}

Cell place_cell(double value, const Axis& axis) {
  if (axis.categories.empty()) return Number{.value = value, .format = axis.format};
  return shown_place(value, axis);
}

Column axis_column(const std::string& id, const Axis& axis) {
  return {.id = id,
          .title = axis.title.empty() ? id : axis.title,
          .unit = unit_behind(axis.unit, axis.format),
          .align = axis.categories.empty() ? Align::right : Align::left};
}

Cell value_cell(const Point& point, const Axis& axis) {
  if (!std::isfinite(point.y)) return Absent{};
  return Number{.value = point.y, .format = axis.format, .low = point.low, .high = point.high};
}

std::string panel_name(const Figure& figure, std::size_t place) {
  const auto& panel = figure.panels[place];
  return !panel.title.empty() ? panel.title : !panel.y.title.empty() ? panel.y.title : fmt::format("{}", place + 1);
}

std::string corner_of(const std::string& row_title, const std::string& column_title) {
  return row_title.empty() || column_title.empty() ? row_title + column_title : row_title + " / " + column_title;
}

}  // namespace

std::vector<Point> points_of(const Line& line) {
  const auto size = std::min(line.x.size(), line.y.size());
  const bool band = line.low.size() >= size && line.high.size() >= size;
  std::vector<Point> points;
  for (std::size_t i = 0; i < size; ++i) {
    if (!std::isfinite(line.x[i])) continue;
    Point point{.x = line.x[i], .y = line.y[i], .label = i < line.labels.size() ? line.labels[i] : std::string()};
    if (band && std::isfinite(line.low[i]) && std::isfinite(line.high[i]))
      point.low = line.low[i], point.high = line.high[i];
    points.push_back(point);
  }
  return points;
}

std::vector<Point> thinned(std::vector<Point> points, std::size_t most) {
  if (points.size() <= most) return points;
  const auto stretches = std::max<std::size_t>(most / 2, 1);
  std::vector<Point> drawn;
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(s * points.size() / stretches);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>((s + 1) * points.size() / stretches);
    auto least = first, largest = first;
    for (auto it = first; it != last; ++it) {
      if (!std::isfinite(it->y)) continue;
      if (!(it->y >= least->y)) least = it;  // also where `least` is a gap
      if (!(it->y <= largest->y)) largest = it;
    }
    drawn.push_back(*std::min(least, largest));
    if (least != largest) drawn.push_back(*std::max(least, largest));
  }
  return drawn;
}

bool has_labels(const Figure& figure) {
  for (const auto& panel : figure.panels)
    if (std::any_of(panel.lines.begin(), panel.lines.end(), [](const Line& line) { return !line.labels.empty(); }))
      return true;
  return false;
}

std::string shown_elsewhere(const Figure& figure) {
  std::size_t points = 0;
  std::set<std::string> names;
  for (const auto& panel : figure.panels)
    for (const auto& line : panel.lines) {
      points += points_of(line).size();
      names.insert(line.name);
    }
  return fmt::format("{} points of {} line{}, drawn in the HTML report", points, names.size(),
                     names.size() == 1 ? "" : "s");
}

Table points_table(const Figure& figure, std::size_t most) {
  Table table{.id = figure.id, .title = figure.title};
  if (figure.panels.empty()) return table;
  const bool several = figure.panels.size() > 1;
  if (several) table.columns.push_back({.id = "panel", .title = "panel", .align = Align::left});
  table.columns.push_back({.id = "line", .title = "line", .align = Align::left});
  const bool labelled = has_labels(figure);
  if (labelled) table.columns.push_back({.id = "point", .title = "point", .align = Align::left});
  // Panels that measure different things share the columns, whose titles then say only x and y.
  const auto& first = figure.panels[0];
  const auto same = [&](auto axis) {
    return std::all_of(figure.panels.begin(), figure.panels.end(), [&](const Panel& panel) {
      return (panel.*axis).title == (first.*axis).title && (panel.*axis).unit == (first.*axis).unit;
    });
  };
  table.columns.push_back(same(&Panel::x) ? axis_column("x", first.x) : Column{.id = "x", .title = "x"});
  table.columns.push_back(same(&Panel::y) ? axis_column("y", first.y) : Column{.id = "y", .title = "y"});
  std::size_t all = 0, shown = 0;
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    const auto& panel = figure.panels[p];
    for (const auto& line : panel.lines) {
      const auto points = points_of(line);
      all += points.size();
      for (const auto place : evenly(points.size(), most)) {
        std::vector<Cell> row;
        if (several) row.emplace_back(panel_name(figure, p));
        row.emplace_back(line.name);
        if (labelled) row.emplace_back(points[place].label);
        row.push_back(place_cell(points[place].x, panel.x));
        row.push_back(value_cell(points[place], panel.y));
        table.rows.push_back(std::move(row));
        ++shown;
      }
    }
  }
  if (shown < all)
    table.note = fmt::format("{} of {} points, evenly of each line.", report::count(static_cast<double>(shown)),
                             report::count(static_cast<double>(all)));
  return table;
}

Table places_table(const Panel& panel, std::size_t most) {
  std::vector<double> places;
  for (const auto& line : panel.lines)
    for (const auto& point : points_of(line)) places.push_back(point.x);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  Table table{.title = panel.title, .columns = {{.id = "line", .title = shown_title(panel.y), .align = Align::left}}};
  std::vector<double> chosen;
  for (const auto place : evenly(places.size(), most)) chosen.push_back(places[place]);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto place = shown_place(chosen[i], panel.x);
    table.columns.push_back(
        {.id = fmt::format("x{}", i + 1), .title = i || panel.x.title.empty() ? place : panel.x.title + " " + place});
  }
  for (const auto& line : panel.lines) {
    auto points = points_of(line);
    std::erase_if(points, [](const Point& point) { return !std::isfinite(point.y); });
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    std::vector<Cell> row{line.name};
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto after = std::upper_bound(points.begin(), points.end(), chosen[i],
                                          [](double x, const Point& point) { return x < point.x; });
      // Nothing new since the last column: the line began later, has ended, or has a gap here.
      const bool known = after != points.begin() && (i == 0 || std::prev(after)->x > chosen[i - 1]);
      row.push_back(known ? value_cell(*std::prev(after), panel.y) : Cell(Absent{}));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

const std::string* label_of(const HeatMap& map, std::size_t row, std::size_t column) {
  return row < map.labels.size() && column < map.labels[row].size() ? &map.labels[row][column] : nullptr;
}

Table fields_table(const HeatMap& map) {
  Table table{.id = map.id, .title = map.title, .note = map.note};
  const auto corner = corner_of(map.row_title, map.column_title);
  table.columns.push_back({.id = "row", .title = corner, .align = Align::left});
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    table.columns.push_back({.id = fmt::format("column{}", c + 1), .title = map.columns[c]});
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    std::vector<Cell> row{map.rows[r]};
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      if (const auto* label = label_of(map, r, c)) {
        row.push_back(*label);
        continue;
      }
      const bool known = r < map.values.size() && c < map.values[r].size() && std::isfinite(map.values[r][c]);
      row.push_back(known ? Cell(Number{.value = map.values[r][c], .format = map.scale.format}) : Cell(Absent{}));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table bars_table(const Bars& bars) {
  Table table{.id = bars.id, .title = bars.title, .note = bars.note};
  table.columns.push_back({.id = "row", .title = "", .align = Align::left});
  for (const auto& name : bars.rows) table.rows.push_back({name});
  for (const auto* all : {&bars.parts, &bars.marks})
    for (const auto& part : *all) {
      table.columns.push_back({.id = fmt::format("part{}", table.columns.size()),
                               .title = part.name,
                               .unit = unit_behind(bars.scale.unit, bars.scale.format)});
      for (std::size_t r = 0; r < bars.rows.size(); ++r) {
        const bool known = r < part.values.size() && std::isfinite(part.values[r]);
        table.rows[r].push_back(known ? Cell(Number{.value = part.values[r], .format = bars.scale.format})
                                      : Cell(Absent{}));
      }
    }
  return table;
}

const SurfaceField* field_of(const Layer& layer, std::size_t row, std::size_t column) {
  return row < layer.fields.size() && column < layer.fields[row].size() ? &layer.fields[row][column] : nullptr;
}

Table layers_table(const Surface& surface) {
  Table table{.id = surface.id, .title = surface.title, .note = surface.note};
  table.columns.push_back(
      {.id = "row", .title = corner_of(surface.row_title, surface.column_title), .align = Align::left});
  for (std::size_t c = 0; c < surface.columns.size(); ++c)
    table.columns.push_back({.id = fmt::format("column{}", c + 1), .title = surface.columns[c]});
  for (std::size_t r = 0; r < surface.rows.size(); ++r)
    for (const auto& layer : surface.layers) {
      std::vector<Cell> row{surface.rows.size() > 1 ? surface.rows[r] + ", " + layer.name : layer.name};
      for (std::size_t c = 0; c < surface.columns.size(); ++c) {
        const auto* field = field_of(layer, r, c);
        const auto shown = field ? shown_field(*field) : std::string();
        const auto words = shown.empty() && field ? field->outcome : shown;
        row.push_back(words.empty() ? Cell(Absent{}) : Cell(words));
      }
      table.rows.push_back(std::move(row));
    }
  return table;
}

}  // namespace strata::document
