// SPDX-License-Identifier: Apache-2.0
#include "analysis/surface.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/case_statistics.hpp"
#include "common/lookup.hpp"
#include "common/text.hpp"

namespace strata::analysis {
namespace {

constexpr const char* kAxes[] = {"batch", "size", "mode", "precision", "threads", "device"};

// "64" of a square image, else "64x96"; empty: no image.
std::string size_of(const core::Case& question) {
  const auto size = question.image_size();
  if (!size) return {};
  return size->first == size->second ? fmt::format("{}", size->first) : fmt::format("{}x{}", size->first, size->second);
}

std::string value_of(const core::Case& question, const std::string& axis) {
  if (axis == "size") return size_of(question);
  for (const auto& [name, value] : question.axes())
    if (name == axis) return value;
  return {};
}

// Numbers by their size, other words as they come.
bool comes_before(const std::string& a, const std::string& b) {
  const auto x = strata::number<double>(a), y = strata::number<double>(b);
  return x && y && *x != *y ? *x < *y : !(x && y) && a < b;
}

std::vector<GridAxis> varying(const store::Run& run) {
  std::vector<GridAxis> axes;
  for (const std::string name : kAxes) {
    GridAxis axis{name, {}};
    for (const auto& one : run.cases) {
      auto value = value_of(one.question, name);
      if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
        axis.values.push_back(std::move(value));
    }
    if (axis.values.size() < 2) continue;
    std::stable_sort(axis.values.begin(), axis.values.end(), comes_before);
    axes.push_back(std::move(axis));
  }
  return axes;
}

GridCell cell_of(const store::Run& run, const store::Case& one, const std::vector<GridAxis>& axes) {
  GridCell cell;
  cell.one = &one;
  for (const auto& axis : axes) cell.at.push_back(value_of(one.question, axis.name));
  const CaseStatistics statistics(run, one);
  cell.reliable = statistics.reliable();
  std::vector<std::size_t> playing;  // places in measured()
  for (const auto& row : one.rows) {
    if (lookup::flag(row.info, "harness")) continue;
    CellLevel level{row.state,
                    row.reason,
                    {},
                    lookup::number(row.memory, "peak_private_bytes"),
                    lookup::number(row.memory, "expected_peak_bytes"),
                    {}};
    const auto place = row.state == "measured" ? statistics.index_of(row.name()) : std::nullopt;
    if (place) {
      playing.push_back(*place);
      const double ms = statistics.estimate_ms(*place);
      if (std::isfinite(ms)) level.sample_ms = ms / static_cast<double>(std::max<std::int64_t>(1, one.question.batch));
      if (const auto reference = statistics.reference(); reference && *reference == *place) {
        level.speedup = {1, 1, 1};
        level.direction = stats::Direction::same;
      } else if (reference) {
        const auto comparison = statistics.compare(*reference, *place);
        level.speedup = comparison.ratio();
        if (cell.reliable) level.direction = statistics.direction(comparison);
      }
    }
    cell.levels.emplace(row.name(), std::move(level));
  }
  if (!cell.reliable) return cell;
  const auto best = stats::not_excluded_as_best(
      playing.size(), [&](std::size_t i, std::size_t j) { return statistics.compare(playing[i], playing[j]); },
      statistics.minimum());
  for (const auto i : best.members) cell.best.push_back(statistics.measured()[playing[i]]->name());
  cell.tie_within = best.tie_within;
  return cell;
}

}  // namespace

const GridCell* Grid::find(const std::vector<std::string>& at) const {
  const auto found = std::find_if(cells.begin(), cells.end(), [&](const GridCell& cell) { return cell.at == at; });
  return found == cells.end() ? nullptr : &*found;
}

Grid grid_of(const store::Run& run) {
  Grid grid;
  grid.axes = varying(run);
  for (const auto& one : run.cases) {
    grid.cells.push_back(cell_of(run, one, grid.axes));
    if (grid.reference.empty()) grid.reference = one.reference_level;
    for (const auto& row : one.rows)
      if (!lookup::flag(row.info, "harness") &&
          std::find(grid.levels.begin(), grid.levels.end(), row.name()) == grid.levels.end())
        grid.levels.push_back(row.name());
  }
  return grid;
}

}  // namespace strata::analysis
