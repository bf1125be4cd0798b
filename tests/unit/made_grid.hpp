// SPDX-License-Identifier: Apache-2.0
// Grids of a sweep without a sweep: of chosen comparisons, from which it follows who may be the fastest.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/surface.hpp"

namespace strata::analysis {

using Places = std::vector<std::size_t>;  // of a field: a place in each axis

inline stats::Comparison made_comparison(double lead, double half_width) {
  stats::Comparison c;
  c.log_ratio = {lead, lead - half_width, lead + half_width};
  c.half_width = {.width = half_width, .basis = stats::Basis::assumed};
  c.per_restart.assign(6, lead);
  return c;
}

// The comparison of the second level over the first at a field.
using Compare = std::function<stats::Comparison(const Places& at, std::size_t reference, std::size_t level)>;

inline void fill(GridCell& cell, const std::vector<std::string>& levels, const Places& at, const Compare& compare) {
  for (const auto& level : levels)
    cell.levels.emplace(level, CellLevel{.state = State::measured, .iteration_ms = {1, 1, 1}});
  const auto best = stats::not_excluded_as_best(
      levels.size(),
      [&](std::size_t i, std::size_t j) {
        const auto comparison = compare(at, i, j);
        cell.comparisons.insert_or_assign({levels[i], levels[j]}, comparison);
        return comparison;
      },
      cell.minimum_effect);
  for (const auto i : best.members) cell.best.push_back(levels[i]);
  cell.tie_within = best.tie_within;
}

// Every combination of the axes' values, the last axis fastest.
inline Grid made_grid(std::vector<GridAxis> axes, std::vector<std::string> levels, const Compare& compare) {
  Grid grid{.axes = std::move(axes), .levels = std::move(levels), .reference = "a"};
  Places at(grid.axes.size(), 0);
  for (;;) {
    GridCell cell;
    for (std::size_t i = 0; i < at.size(); ++i) cell.at.push_back(grid.axes[i].values[at[i]]);
    fill(cell, grid.levels, at, compare);
    grid.cells.push_back(std::move(cell));
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == grid.axes[axis - 1].values.size()) at[--axis] = 0;
    if (axis == 0) return grid;
  }
}

// Levels by their log times at a field, all intervals of this half width.
inline Compare by_times(const std::function<double(const Places&, std::size_t level)>& log_time, double half_width) {
  return [=](const Places& at, std::size_t reference, std::size_t level) {
    return made_comparison(log_time(at, reference) - log_time(at, level), half_width);
  };
}

}  // namespace strata::analysis
