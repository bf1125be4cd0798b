// SPDX-License-Identifier: Apache-2.0
#include "analysis/surface.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/case_statistics.hpp"
#include "analysis/row_numbers.hpp"
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
    for (const auto& run_case : run.cases) {
      auto value = value_of(run_case.question, name);
      if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
        axis.values.push_back(std::move(value));
    }
    if (axis.values.size() < 2) continue;
    std::stable_sort(axis.values.begin(), axis.values.end(), comes_before);
    axes.push_back(std::move(axis));
  }
  return axes;
}

CellLevel level_of(const CaseStatistics& statistics, const store::Row& row, std::optional<std::size_t> place,
                   const GridCell& cell) {
  const auto memory = row.memory.value_or(store::MemoryFacts());
  CellLevel level{.state = row.state,
                  .reason = row.reason,
                  .peak_bytes = memory.peak_private_bytes,
                  .expected_bytes = memory.expected_peak_bytes,
                  .steady_bytes = memory.steady_private_bytes,
                  .share_bytes = memory.steady_pss_bytes,
                  .device_bytes = memory.device_peak_bytes};
  if (!place) return level;
  level.meters = meters_of(row, cell.run_case->question.threads);
  level.iteration_ms = row_numbers(statistics, *place, cell.batch).time_ms;
  const auto reference = statistics.reference();
  if (!reference) return level;
  if (*reference == *place) {
    level.speedup = {1, 1, 1};
    level.direction = stats::Direction::same;
    return level;
  }
  const auto comparison = cell.reliable ? statistics.compare(*reference, *place) : stats::Comparison{};
  level.speedup = comparison.ratio();
  level.direction = statistics.direction(comparison);
  if (const auto used = cell.reliable ? std::nullopt : statistics.compare_by_processor(*reference, *place))
    level.processor_speedup = used->ratio();
  return level;
}

// Each two of the candidates against each other, and which of them may be the fastest.
void find_best(GridCell& cell, const CaseStatistics& statistics, const std::vector<std::size_t>& candidates) {
  const auto name = [&](std::size_t i) { return statistics.measured()[candidates[i]]->name(); };
  const auto best = stats::not_excluded_as_best(
      candidates.size(),
      [&](std::size_t i, std::size_t j) {
        return cell.comparisons.insert_or_assign({name(i), name(j)}, statistics.compare(candidates[i], candidates[j]))
            .first->second;
      },
      cell.minimum_effect);
  for (const auto i : best.members) cell.best.push_back(name(i));
  cell.tie_within = best.tie_within;
}

GridCell cell_of(const store::Run& run, const store::Case& run_case, const std::vector<GridAxis>& axes) {
  GridCell cell;
  cell.run_case = &run_case;
  for (const auto& axis : axes) cell.at.push_back(value_of(run_case.question, axis.name));
  const CaseStatistics statistics(run, run_case);
  cell.reliable = statistics.reliable();
  cell.batch = static_cast<double>(std::max<std::int64_t>(1, run_case.question.batch));
  cell.minimum_effect = statistics.minimum();
  std::vector<std::size_t> candidates;  // places in measured()
  for (const auto& row : run_case.rows) {
    if (row.info.harness) continue;
    const auto place = row.state == State::measured ? statistics.index_of(row.name()) : std::nullopt;
    if (place) candidates.push_back(*place);
    cell.levels.emplace(row.name(), level_of(statistics, row, place, cell));
  }
  if (cell.reliable) find_best(cell, statistics, candidates);
  return cell;
}

// In the order of the axes' values, whatever the order in which they were measured.
void sort_cells(Grid& grid) {
  const auto places = [&](const GridCell& cell) {
    std::vector<std::ptrdiff_t> all;
    for (std::size_t i = 0; i < grid.axes.size(); ++i) {
      const auto& values = grid.axes[i].values;
      all.push_back(std::find(values.begin(), values.end(), cell.at[i]) - values.begin());
    }
    return all;
  };
  std::stable_sort(grid.cells.begin(), grid.cells.end(),
                   [&](const GridCell& a, const GridCell& b) { return places(a) < places(b); });
}

}  // namespace

const stats::Comparison* GridCell::compared(const std::string& reference, const std::string& level) const {
  const auto it = comparisons.find({reference, level});
  return it == comparisons.end() ? nullptr : &it->second;
}

const GridCell* Grid::find(const std::vector<std::string>& at) const {
  const auto it = std::find_if(cells.begin(), cells.end(), [&](const GridCell& cell) { return cell.at == at; });
  return it == cells.end() ? nullptr : &*it;
}

Grid grid_of(const store::Run& run) {
  Grid grid;
  grid.axes = varying(run);
  for (const auto& run_case : run.cases) {
    grid.cells.push_back(cell_of(run, run_case, grid.axes));
    if (grid.reference.empty()) grid.reference = run_case.reference_level;
    for (const auto& row : run_case.rows)
      if (!row.info.harness && std::find(grid.levels.begin(), grid.levels.end(), row.name()) == grid.levels.end())
        grid.levels.push_back(row.name());
  }
  sort_cells(grid);
  return grid;
}

}  // namespace strata::analysis
