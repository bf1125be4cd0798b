// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include "analysis/crossing.hpp"
#include "analysis/reliability.hpp"
#include "common/text.hpp"
#include "report/format.hpp"
#include "report/sweep_sections.hpp"

namespace strata::report {
namespace {

using analysis::CellLevel;
using analysis::Grid;
using analysis::GridCell;
constexpr double kTie = 0.1;  // levels that all lie within so much of each other are called a tie

bool is_resolved(const CellLevel& level) {
  return level.direction == stats::Direction::faster || level.direction == stats::Direction::slower;
}

// What a field says beside its number, or why it has none.
std::string outcome_of(const Grid& grid, const GridCell& cell, const std::string& name, const CellLevel& level) {
  if (level.state != State::measured) return spaced(to_string(level.state));
  std::vector<std::string> words;
  if (name != grid.reference && level.direction == stats::Direction::same)
    words.push_back("the same as " + grid.reference);
  else if (name != grid.reference && is_resolved(level))
    words.push_back(fmt::format("{} than {}", stats::to_string(level.direction), grid.reference));
  else if (name != grid.reference)
    words.push_back("inconclusive against " + grid.reference);
  const bool possible = std::find(cell.best.begin(), cell.best.end(), name) != cell.best.end();
  if (possible) words.push_back(cell.best.size() == 1 ? "the fastest" : "may be the fastest");
  if (!cell.reliable) words = {analysis::kNotReliable};
  return fmt::format("{}", fmt::join(words, ", "));
}

// One thing that is measured, over rows and columns.
struct Quantity {
  std::string name;
  document::Axis scale;
  std::optional<double> middle;
  std::string note;
  std::function<document::SurfaceField(const GridCell&, const std::string& name, const CellLevel&)> field;
};

Quantity speedup_quantity(const Grid& grid) {
  return {.name = "speedup over " + grid.reference,
          .scale = {.title = fmt::format("speedup over {}", grid.reference),
                    .logarithmic = true,
                    .format = document::NumberFormat::ratio},
          .middle = 1,
          .note = "In brackets: a speedup whose 99% interval does not exclude 1.",
          .field = [](const GridCell&, const std::string&, const CellLevel& level) {
            document::SurfaceField field{.number = number_of(level.speedup, document::NumberFormat::ratio)};
            if (std::isfinite(level.speedup.value) && !is_resolved(level))
              field.label = fmt::format("({:.2f})", level.speedup.value);
            return field;
          }};
}

Quantity memory_over_reference(const Grid& grid) {
  return {.name = "memory over " + grid.reference,
          .scale = {.title = fmt::format("peak memory as a multiple of {}'s", grid.reference),
                    .logarithmic = true,
                    .format = document::NumberFormat::ratio},
          .middle = 1,
          .note = "Peak of the private memory of a process in which the level was alone.",
          .field = [&grid](const GridCell& cell, const std::string&, const CellLevel& level) {
            const auto* reference = level_in(&cell, grid.reference);
            document::SurfaceField field{.number = {.format = document::NumberFormat::ratio}};
            if (level.peak_bytes && reference && reference->peak_bytes && *reference->peak_bytes > 0)
              field.number.value = *level.peak_bytes / *reference->peak_bytes;
            return field;
          }};
}

std::vector<Quantity> quantities_of(const Grid& grid) {
  std::vector<Quantity> all;
  if (!grid.reference.empty()) all.push_back(speedup_quantity(grid));
  all.push_back({.name = "time of a sample",
                 .scale = {.title = "time of a sample", .logarithmic = true, .format = document::NumberFormat::seconds},
                 .middle = std::nullopt,
                 .note = "",
                 .field = [](const GridCell& cell, const std::string&, const CellLevel& level) {
                   return document::SurfaceField{.number = sample_time_of(cell, level)};
                 }});
  all.push_back(
      {.name = "time of an iteration",
       .scale = {.title = "time of an iteration", .logarithmic = true, .format = document::NumberFormat::seconds},
       .middle = std::nullopt,
       .note = "",
       .field = [](const GridCell& cell, const std::string&, const CellLevel& level) {
         return document::SurfaceField{.number = iteration_time_of(cell, level)};
       }});
  all.push_back({.name = "throughput",
                 .scale = {.title = "throughput",
                           .unit = "samples/s",
                           .logarithmic = true,
                           .format = document::NumberFormat::digits},
                 .middle = std::nullopt,
                 .note = "",
                 .field = [](const GridCell& cell, const std::string&, const CellLevel& level) {
                   return document::SurfaceField{.number = throughput_of(cell, level)};
                 }});
  all.push_back({.name = "peak memory",
                 .scale = {.title = "peak memory", .logarithmic = true, .format = document::NumberFormat::bytes},
                 .middle = std::nullopt,
                 .note = "Peak of the private memory of a process in which the level was alone.",
                 .field = [](const GridCell&, const std::string&, const CellLevel& level) {
                   return document::SurfaceField{.number = {.value = level.peak_bytes.value_or(stats::nan),
                                                            .format = document::NumberFormat::bytes}};
                 }});
  if (!grid.reference.empty()) all.push_back(memory_over_reference(grid));
  for (const auto& meter : shown_meters())
    all.push_back({.name = meter.title,
                   .scale = {.title = meter.title, .unit = meter.unit, .logarithmic = false, .format = meter.format},
                   .middle = std::nullopt,
                   .note = meter.note,
                   .field = [&meter](const GridCell&, const std::string&, const CellLevel& level) {
                     document::SurfaceField field{.number = {.format = meter.format}};
                     const auto cell = meter_cell(level, meter);
                     if (const auto* number = std::get_if<document::Number>(&cell)) field.number = *number;
                     if (const auto* absent = std::get_if<document::Absent>(&cell)) field.outcome = absent->reason;
                     return field;
                   }});
  return all;
}

document::Layer layer_of(const Grid& grid, const SweepLayout& layout, const std::vector<std::string>& map,
                         const Quantity& quantity, const std::string& name) {
  document::Layer layer{name, {}};
  for (std::size_t r = 0; r < layout.row_count(); ++r) {
    layer.fields.emplace_back();
    for (std::size_t c = 0; c < layout.column_count(); ++c) {
      const auto* cell = layout.cell_at(map, r, c);
      const auto* level = level_in(cell, name);
      document::SurfaceField field{.outcome = cell ? "no such level here" : "not reached"};
      if (level) {
        field = quantity.field(*cell, name, *level);
        if (field.number.mark == kNotReliableMark) field = {.number = {.format = field.number.format}};
        const bool without = level->state == State::measured && !std::isfinite(field.number.value);
        if (!without || !cell->reliable) field.outcome = outcome_of(grid, *cell, name, *level);
        if (without && field.outcome.empty()) field.outcome = "not known";
      }
      layer.fields.back().push_back(std::move(field));
    }
  }
  return layer;
}

bool has_number(const document::Surface& surface) {
  for (const auto& layer : surface.layers)
    for (const auto& row : layer.fields)
      if (std::any_of(row.begin(), row.end(), [](const auto& field) { return std::isfinite(field.number.value); }))
        return true;
  return false;
}

std::string why_empty(const GridCell& cell) {
  if (!cell.reliable) return analysis::kNotReliable;
  std::set<State> states;
  for (const auto& [name, level] : cell.levels) states.insert(level.state);
  return states.size() == 1 ? spaced(to_string(*states.begin())) : "no level";
}

// "static"; "tie within 3%: eager, static"; "eager, onednn or static"; why there is none.
std::string best_words(const GridCell& cell) {
  if (cell.best.empty()) return why_empty(cell);
  if (cell.best.size() == 1) return cell.best.front();
  if (cell.tie_within <= kTie)
    return fmt::format("tie within {:.0f}%: {}", std::ceil(100 * cell.tie_within), fmt::join(cell.best, ", "));
  return fmt::format("{}", fmt::join(cell.best, " or "));
}

// Levels that a map gives a colour.
std::vector<std::string> coloured(const Grid& grid) {
  std::vector<std::string> names;
  for (const auto& level : grid.levels)
    if (std::any_of(grid.cells.begin(), grid.cells.end(),
                    [&](const GridCell& cell) { return cell.best.size() == 1 && cell.best.front() == level; }))
      names.push_back(level);
  return names;
}

}  // namespace

std::vector<document::HeatMap> sweep_winners(const Grid& grid, const SweepLayout& layout) {
  std::vector<document::HeatMap> maps;
  const auto names = coloured(grid);
  for (const auto& combination : layout.maps()) {
    document::HeatMap map;
    layout.name_plane(map);
    map.values.assign(map.rows.size(), std::vector<double>(map.columns.size(), stats::nan));
    map.labels.assign(map.rows.size(), std::vector<std::string>(map.columns.size()));
    map.id = fmt::format("fastest{}", maps.size() + 1);
    const auto words = layout.words_of(combination);
    map.title = words.empty() ? "Who is the fastest" : "Who is the fastest (" + words + ")";
    map.scale.title = "level";
    map.scale.categories = names;
    map.choices = layout.choices_of(combination);
    for (std::size_t r = 0; r < map.rows.size(); ++r)
      for (std::size_t c = 0; c < map.columns.size(); ++c) {
        const auto* cell = layout.cell_at(combination, r, c);
        map.labels[r][c] = cell ? best_words(*cell) : "not reached";
        if (!cell || cell->best.size() != 1) continue;
        const auto position = std::find(names.begin(), names.end(), cell->best.front());
        map.values[r][c] = static_cast<double>(position - names.begin());
      }
    map.note =
        "A field has a colour where every other level is excluded as the fastest, with 99% for all comparisons of the "
        "field together (multiple comparisons with the best). Else it names those that are not excluded; a tie where "
        "all of them lie within 10% of each other by their 99% intervals.";
    maps.push_back(std::move(map));
  }
  return maps;
}

document::Section sweep_lines(const Grid& grid, const SweepLayout& layout) {
  document::Section section{.id = "times", .title = "Time of a sample"};
  const auto* axis = layout.columns();
  if (!axis) return section;
  const bool numbers = analysis::is_ordered(*axis);
  for (const auto& map : layout.maps()) {
    const auto words = layout.words_of(map);
    document::Figure figure;
    figure.id = fmt::format("times{}", section.items.size() + 1);
    figure.title = fmt::format("Against {}{}", axis->name, words.empty() ? words : " (" + words + ")");
    figure.note = "Bands are 99% intervals of the restarts. Points that are not reliable are left out.";
    figure.choices = layout.choices_of(map);
    for (std::size_t r = 0; r < layout.row_count(); ++r) {
      document::Panel panel;
      if (const auto* rows = layout.rows()) panel.title = fmt::format("{} {}", rows->name, rows->values[r]);
      panel.x = {.title = axis->name, .logarithmic = numbers};
      if (!numbers) panel.x.categories = axis->values;
      panel.y = {.title = "time of a sample", .logarithmic = true, .format = document::NumberFormat::seconds};
      for (const auto& name : grid.levels) {
        document::Line line;
        line.name = line.group = name;
        for (std::size_t c = 0; c < axis->values.size(); ++c) {
          const auto* cell = layout.cell_at(map, r, c);
          const auto* level = level_in(cell, name);
          if (!level || !cell->reliable || !std::isfinite(level->iteration_ms.value)) continue;
          const auto time = sample_time_of(*cell, *level);
          line.x.push_back(numbers ? *strata::number<double>(axis->values[c]) : static_cast<double>(c));
          line.y.push_back(time.value);
          line.low.push_back(time.low.value_or(stats::nan));
          line.high.push_back(time.high.value_or(stats::nan));
        }
        if (!line.x.empty()) panel.lines.push_back(std::move(line));
      }
      figure.panels.push_back(std::move(panel));
    }
    section.items.push_back(std::move(figure));
  }
  return section;
}

document::Section sweep_surfaces(const Grid& grid, const SweepLayout& layout) {
  document::Section section{.id = "surfaces", .title = "Times, throughput, memory"};
  bool first = true;
  for (const auto& quantity : quantities_of(grid)) {
    std::vector<document::Item> maps;
    bool any = false;
    for (const auto& map : layout.maps()) {
      document::Surface surface;
      surface.id = fmt::format("surface{}", section.items.size() + maps.size() + 1);
      const auto words = layout.words_of(map);
      surface.title = quantity.name + (words.empty() ? "" : " (" + words + ")");
      surface.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(surface.title[0])));
      layout.name_plane(surface);
      surface.scale = quantity.scale;
      surface.middle = quantity.middle;
      surface.note = quantity.note;
      surface.choices = {{"show", quantity.name}};
      for (auto& choice : layout.choices_of(map)) surface.choices.push_back(std::move(choice));
      surface.is_detail = !first;
      for (const auto& name : grid.levels)
        if (!(quantity.middle && name == grid.reference))
          surface.layers.push_back(layer_of(grid, layout, map, quantity, name));
      any = any || has_number(surface);
      maps.push_back(std::move(surface));
    }
    if (!any) continue;
    first = false;
    std::move(maps.begin(), maps.end(), std::back_inserter(section.items));
  }
  return section;
}

}  // namespace strata::report
