// SPDX-License-Identifier: Apache-2.0
#include "report/render/html_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/escape.hpp"
#include "common/text.hpp"
#include "report/render/cell_text.hpp"
#include "report/render/points.hpp"

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
          {"format", axis.format == NumberFormat::count ? "digits" : name_of(axis.format)},
          {"categories", one_line_each(axis.categories)},
          {"from_zero", axis.from_zero}};
}

// Seven digits: more than a screen shows, and shorter than what a product leaves behind.
double rounded(double value) {
  return strata::number<double>(fmt::format("{:.6e}", value)).value_or(value);
}

// JSON has no NaN; a null is a gap.
PlotJson number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? PlotJson(rounded(*value)) : PlotJson(nullptr);
}

PlotJson plot_line(const Line& line, int colour) {
  const auto points = thinned(points_of(line), kMostOnScreen);
  PlotJson out{{"name", escape::one_line(line.name)},
               {"colour", colour},
               {"dashed", line.dashed},
               {"marks", line.marks_only},
               {"shows_labels", line.shows_labels}};
  auto &x = out["x"] = PlotJson::array(), &y = out["y"] = PlotJson::array();
  for (const auto& point : points) x.push_back(number_or_null(point.x)), y.push_back(number_or_null(point.y));
  if (!line.labels.empty())
    for (const auto& point : points) out["labels"].push_back(escape::one_line(point.label));
  if (std::none_of(points.begin(), points.end(), [](const Point& point) { return point.low.has_value(); })) return out;
  auto &low = out["low"] = PlotJson::array(), &high = out["high"] = PlotJson::array();
  for (const auto& point : points) low.push_back(number_or_null(point.low)), high.push_back(number_or_null(point.high));
  return out;
}

PlotJson plot_choices(const std::vector<Choice>& choices) {
  auto all = PlotJson::array();
  for (const auto& choice : choices)
    all.push_back({{"title", escape::one_line(choice.title)}, {"option", escape::one_line(choice.option)}});
  return all;
}

PlotJson plot_parts(const std::vector<BarPart>& parts, std::size_t rows) {
  auto all = PlotJson::array();
  for (const auto& part : parts) {
    auto values = PlotJson::array();
    for (std::size_t r = 0; r < rows; ++r)
      values.push_back(r < part.values.size() ? number_or_null(part.values[r]) : PlotJson(nullptr));
    all.push_back({{"name", escape::one_line(part.name)}, {"values", std::move(values)}});
  }
  return all;
}

// "1.42 (1.38–1.47), faster than eager"
std::string field_words(const SurfaceField& field) {
  const auto number = number_text(field.number, report::glyphs(true));
  return escape::one_line(number.empty() || field.outcome.empty() ? number + field.outcome
                                                                  : number + ", " + field.outcome);
}

// What of every field of a layer, as [row][column].
template <class Value>
PlotJson each_field(const Surface& surface, const Layer& layer, const Value& value) {
  auto rows = PlotJson::array();
  for (std::size_t r = 0; r < surface.rows.size(); ++r) {
    rows.push_back(PlotJson::array());
    for (std::size_t c = 0; c < surface.columns.size(); ++c) {
      static const SurfaceField nothing;
      const auto* field = field_of(layer, r, c);
      rows.back().push_back(value(field ? *field : nothing));
    }
  }
  return rows;
}

}  // namespace

Colours::Colours(const Document& document) {
  for_each_item(document, [&](const Item& item, const std::string&) {
    if (const auto* figure = std::get_if<Figure>(&item)) {
      for (const auto& panel : figure->panels)
        for (const auto& line : panel.lines) places_.emplace(group_of(line), static_cast<int>(places_.size()));
    } else if (const auto* map = std::get_if<HeatMap>(&item)) {
      for (const auto& name : map->scale.categories) places_.emplace(name, static_cast<int>(places_.size()));
    } else if (const auto* surface = std::get_if<Surface>(&item)) {
      for (const auto& layer : surface->layers) places_.emplace(layer.name, static_cast<int>(places_.size()));
    }
  });
}

int Colours::of(const std::string& group) const {
  const auto it = places_.find(group);
  return it == places_.end() ? 0 : it->second;
}

int Colours::of(const Line& line) const {
  return of(group_of(line));
}

PlotJson figure_data(const Figure& figure, const Colours& colours) {
  auto panels = PlotJson::array();
  for (const auto& panel : figure.panels) {
    auto lines = PlotJson::array();
    for (const auto& line : panel.lines) lines.push_back(plot_line(line, colours.of(line)));
    auto shaded = PlotJson::array(), borders = PlotJson::array();
    for (const auto& stretch : panel.shaded)
      shaded.push_back({{"from", number_or_null(stretch.from)}, {"to", number_or_null(stretch.to)}});
    for (const double border : panel.borders) borders.push_back(number_or_null(border));
    panels.push_back({{"title", escape::one_line(panel.title)},
                      {"x", plot_axis(panel.x)},
                      {"y", plot_axis(panel.y)},
                      {"lines", std::move(lines)},
                      {"shaded", std::move(shaded)},
                      {"borders", std::move(borders)}});
  }
  return {{"kind", "lines"}, {"panels", std::move(panels)}, {"choices", plot_choices(figure.choices)}};
}

PlotJson bars_data(const Bars& bars) {
  return {{"kind", "bars"},
          {"rows", one_line_each(bars.rows)},
          {"parts", plot_parts(bars.parts, bars.rows.size())},
          {"marks", plot_parts(bars.marks, bars.rows.size())},
          {"scale", plot_axis(bars.scale)}};
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
          {"middle", number_or_null(map.middle)},
          {"choices", plot_choices(map.choices)}};
}

PlotJson surface_data(const Surface& surface, const Colours& colours) {
  auto layers = PlotJson::array();
  for (const auto& layer : surface.layers) {
    const auto of_each = [&](const auto& value) { return each_field(surface, layer, value); };
    layers.push_back({{"name", escape::one_line(layer.name)},
                      {"colour", colours.of(layer.name)},
                      {"values", of_each([](const SurfaceField& field) { return number_or_null(field.number.value); })},
                      {"words", of_each([](const SurfaceField& field) { return PlotJson(field_words(field)); })},
                      {"labels", of_each([](const SurfaceField& field) {
                         const auto shown = shown_field(field);
                         return PlotJson(escape::one_line(shown.empty() ? field.outcome : shown));
                       })}});
  }
  return {{"kind", "surface"},
          {"rows", one_line_each(surface.rows)},
          {"columns", one_line_each(surface.columns)},
          {"row_title", escape::one_line(surface.row_title)},
          {"column_title", escape::one_line(surface.column_title)},
          {"layers", std::move(layers)},
          {"scale", plot_axis(surface.scale)},
          {"middle", number_or_null(surface.middle)},
          {"choices", plot_choices(surface.choices)}};
}

}  // namespace strata::document
