// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/crossing.hpp"
#include "report/sweep_sections.hpp"

namespace strata::report {
namespace {

// A level at a point that has a time and a memory.
struct Place {
  std::string level;
  const analysis::GridCell* cell;
  double sample_s, bytes;
};

// From the fastest to the smallest, by the estimates.
std::vector<Place> front_of(std::vector<Place> places) {
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.sample_s, a.bytes) < std::pair(b.sample_s, b.bytes);
  });
  std::vector<Place> front;
  for (auto& place : places)
    if (front.empty() || place.bytes < front.back().bytes) front.push_back(std::move(place));
  return front;
}

// The points of the same work: they differ in batch and level alone.
class SameWork {
 public:
  SameWork(const analysis::Grid& grid, const SweepLayout& layout);

  struct Group {
    std::vector<std::string> at;  // values of the grid's axes; of the batch, some
    std::vector<Place> places;
  };
  const std::vector<Group>& groups() const { return groups_; }
  // Places of the grid's axes: all but the batch.
  const std::vector<std::size_t>& axes() const { return axes_; }
  bool has_batches() const { return axes_.size() < grid_.axes.size(); }
  document::Panel panel_of(const Group& group) const;

 private:
  document::Line line_of(const std::string& name, const std::vector<Place>& places) const;

  const analysis::Grid& grid_;
  const SweepLayout& layout_;
  std::vector<std::size_t> axes_;
  std::vector<Group> groups_;
};

SameWork::SameWork(const analysis::Grid& grid, const SweepLayout& layout) : grid_(grid), layout_(layout) {
  for (std::size_t i = 0; i < grid.axes.size(); ++i)
    if (grid.axes[i].name != "batch") axes_.push_back(i);
  std::map<std::vector<std::size_t>, Group> sorted;
  for (const auto& cell : grid.cells) {
    std::vector<std::size_t> key;
    for (const auto i : axes_) {
      const auto& values = grid.axes[i].values;
      key.push_back(static_cast<std::size_t>(std::find(values.begin(), values.end(), cell.at[i]) - values.begin()));
    }
    auto& group = sorted[key];
    group.at = cell.at;
    for (const auto& name : grid.levels)
      if (const auto* level = level_in(&cell, name);
          level && cell.reliable && std::isfinite(level->iteration_ms.value) && level->peak_bytes)
        group.places.push_back({.level = name,
                                .cell = &cell,
                                .sample_s = sample_time_of(cell, *level).value,
                                .bytes = *level->peak_bytes});
  }
  for (auto& [key, group] : sorted)
    if (!group.places.empty()) groups_.push_back(std::move(group));
}

// Of one level, or of several, whose names then stand at the points.
document::Line SameWork::line_of(const std::string& name, const std::vector<Place>& places) const {
  document::Line line;
  line.name = line.group = name;
  for (const auto& place : places) {
    line.x.push_back(place.sample_s);
    line.y.push_back(place.bytes);
    const auto batch = has_batches() ? fmt::format("batch {:.0f}", place.cell->batch) : std::string();
    line.labels.push_back(place.level == name ? batch : batch.empty() ? place.level : place.level + ", " + batch);
  }
  return line;
}

document::Panel SameWork::panel_of(const Group& group) const {
  document::Panel panel;
  for (const auto i : axes_) {
    if (layout_.is_chosen(i)) continue;
    panel.title += fmt::format("{}{} {}", panel.title.empty() ? "" : ", ", grid_.axes[i].name, group.at[i]);
  }
  panel.x = {.title = "time of a sample", .logarithmic = true, .format = document::NumberFormat::seconds};
  panel.y = {.title = "peak memory", .logarithmic = true, .format = document::NumberFormat::bytes};
  for (const auto& name : grid_.levels) {
    std::vector<Place> own;
    for (const auto& place : group.places)
      if (place.level == name) own.push_back(place);
    if (own.empty()) continue;
    panel.lines.push_back(line_of(name, own));
    panel.lines.back().marks_only = true;
  }
  panel.lines.push_back(line_of("front", front_of(group.places)));
  panel.lines.back().dashed = true;
  return panel;
}

document::Table front_table(const analysis::Grid& grid, const SameWork& works) {
  document::Table table{.id = "front", .title = "Where no other choice is both faster and smaller"};
  for (const auto i : works.axes()) {
    const auto& axis = grid.axes[i];
    table.columns.push_back({.id = axis.name,
                             .title = axis.name,
                             .align = analysis::is_ordered(axis) ? document::Align::right : document::Align::left});
  }
  table.columns.push_back({.id = "level", .title = "level", .align = document::Align::left});
  if (works.has_batches()) table.columns.push_back({.id = "batch", .title = "batch"});
  table.columns.insert(table.columns.end(), {{.id = "sample_time", .title = "time of a sample"},
                                             {.id = "peak_memory", .title = "peak memory"}});
  for (const auto& group : works.groups())
    for (const auto& place : front_of(group.places)) {
      std::vector<document::Cell> row;
      for (const auto i : works.axes()) row.emplace_back(group.at[i]);
      row.emplace_back(place.level);
      if (works.has_batches()) row.emplace_back(fmt::format("{:.0f}", place.cell->batch));
      row.emplace_back(sample_time_of(*place.cell, place.cell->levels.at(place.level)));
      row.emplace_back(document::Number{.value = place.bytes, .format = document::NumberFormat::bytes});
      table.rows.push_back(std::move(row));
    }
  table.note = "By the estimates, of all levels and batches at the same work.";
  return table;
}

}  // namespace

document::Section sweep_time_and_memory(const analysis::Grid& grid, const SweepLayout& layout) {
  document::Section section{.id = "memory", .title = "Time against memory"};
  const SameWork works(grid, layout);
  if (works.groups().empty()) return section;
  for (const auto& map : layout.maps()) {
    const auto words = layout.words_of(map);
    document::Figure figure{
        .id = fmt::format("memory{}", section.items.size() + 1),
        .title = "A point a level and batch" + (words.empty() ? "" : " (" + words + ")"),
        .note = "To the left is faster, down is smaller. Dashed: the front, where no other point is both.",
        .choices = layout.choices_of(map)};
    for (const auto& group : works.groups())
      if (layout.is_on(map, group.at)) figure.panels.push_back(works.panel_of(group));
    if (!figure.panels.empty()) section.items.push_back(std::move(figure));
  }
  section.items.push_back(front_table(grid, works));
  return section;
}

}  // namespace strata::report
