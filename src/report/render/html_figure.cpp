// SPDX-License-Identifier: Apache-2.0
#include "report/render/html_figure.hpp"

#include <algorithm>
#include <cmath>

#include "common/escape.hpp"
#include "report/render/points.hpp"
#include "report/render/shown.hpp"

namespace strata::document {
namespace {

constexpr std::size_t kMostOnScreen = 2000;

using PlotJson = nlohmann::json;

const std::string& group_of(const Line& line) {
  return line.group.empty() ? line.name : line.group;
}

std::vector<std::string> one_line_each(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const auto& text : texts) out.push_back(escape::one_line(text));
  return out;
}

PlotJson plot_axis(const Axis& axis) {
  return {{"title", escape::one_line(axis.title)},
          {"unit", escape::one_line(axis.unit)},
          {"log", axis.logarithmic},
          {"format", axis.format == Format::count ? "digits" : name_of(axis.format)},
          {"categories", one_line_each(axis.categories)}};
}

// JSON has no NaN; a null is a gap.
PlotJson number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? PlotJson(*value) : PlotJson(nullptr);
}

PlotJson plot_line(const Line& line, int colour) {
  const auto points = thinned(points_of(line), kMostOnScreen);
  PlotJson out{
      {"name", escape::one_line(line.name)}, {"colour", colour}, {"dashed", line.dashed}, {"marks", line.marks_only}};
  auto &x = out["x"] = PlotJson::array(), &y = out["y"] = PlotJson::array();
  for (const auto& point : points) x.push_back(point.x), y.push_back(number_or_null(point.y));
  if (std::none_of(points.begin(), points.end(), [](const Point& point) { return point.low.has_value(); })) return out;
  auto &low = out["low"] = PlotJson::array(), &high = out["high"] = PlotJson::array();
  for (const auto& point : points) low.push_back(number_or_null(point.low)), high.push_back(number_or_null(point.high));
  return out;
}

}  // namespace

Colours::Colours(const Document& document) {
  for (const auto& section : document.sections)
    for (const auto& item : section.items)
      if (const auto* figure = std::get_if<Figure>(&item)) {
        for (const auto& panel : figure->panels)
          for (const auto& line : panel.lines) places_.emplace(group_of(line), static_cast<int>(places_.size()));
      } else if (const auto* map = std::get_if<HeatMap>(&item)) {
        for (const auto& name : map->scale.categories) places_.emplace(name, static_cast<int>(places_.size()));
      }
}

int Colours::of(const std::string& group) const {
  const auto found = places_.find(group);
  return found == places_.end() ? 0 : found->second;
}

int Colours::of(const Line& line) const {
  return of(group_of(line));
}

PlotJson figure_data(const Figure& figure, const Colours& colours) {
  auto panels = PlotJson::array();
  for (const auto& panel : figure.panels) {
    auto lines = PlotJson::array();
    for (const auto& line : panel.lines) lines.push_back(plot_line(line, colours.of(line)));
    panels.push_back({{"title", escape::one_line(panel.title)},
                      {"x", plot_axis(panel.x)},
                      {"y", plot_axis(panel.y)},
                      {"lines", std::move(lines)}});
  }
  return {{"kind", "lines"}, {"panels", std::move(panels)}};
}

PlotJson heat_map_data(const HeatMap& map, const Colours& colours) {
  auto values = PlotJson::array();
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    auto row = PlotJson::array();
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const bool known = r < map.values.size() && c < map.values[r].size();
      row.push_back(known ? number_or_null(map.values[r][c]) : PlotJson(nullptr));
    }
    values.push_back(std::move(row));
  }
  auto labels = PlotJson::array(), places = PlotJson::array();
  for (const auto& row : map.labels) labels.push_back(one_line_each(row));
  for (const auto& name : map.scale.categories) places.push_back(colours.of(name));
  return {{"kind", "heat"},
          {"labels", std::move(labels)},
          {"colours", std::move(places)},
          {"rows", one_line_each(map.rows)},
          {"columns", one_line_each(map.columns)},
          {"row_title", escape::one_line(map.row_title)},
          {"column_title", escape::one_line(map.column_title)},
          {"values", std::move(values)},
          {"scale", plot_axis(map.scale)},
          {"middle", number_or_null(map.middle)}};
}

}  // namespace strata::document
