// SPDX-License-Identifier: Apache-2.0
#include "analysis/crossing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "common/text.hpp"

namespace strata::analysis {
namespace {

constexpr double kTailOfAll = 0.005;  // at each end of a 99% interval

double tail_of(std::size_t intervals) {
  return kTailOfAll / static_cast<double>(std::max<std::size_t>(1, intervals));
}

std::size_t place_of(const GridAxis& axis, const std::string& value) {
  return static_cast<std::size_t>(std::find(axis.values.begin(), axis.values.end(), value) - axis.values.begin());
}

// The lines along an axis, each as the values of all axes with none at this one, in the order of the axes' values.
std::vector<std::vector<std::string>> lines_along(const Grid& grid, std::size_t axis) {
  std::map<std::vector<std::size_t>, std::vector<std::string>> lines;
  for (const auto& cell : grid.cells) {
    auto at = cell.at;
    at[axis].clear();
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < at.size(); ++i) places.push_back(i == axis ? 0 : place_of(grid.axes[i], at[i]));
    lines.emplace(std::move(places), std::move(at));
  }
  std::vector<std::vector<std::string>> sorted;
  for (auto& [places, at] : lines) sorted.push_back(std::move(at));
  return sorted;
}

// The cells of a line by the axis' values; nullptr: not reached.
std::vector<const GridCell*> cells_along(const Grid& grid, std::size_t axis, std::vector<std::string> at) {
  std::vector<const GridCell*> cells;
  for (const auto& value : grid.axes[axis].values) {
    at[axis] = value;
    cells.push_back(grid.find(at));
  }
  return cells;
}

bool may_be_fastest(const GridCell& cell, const std::string& level) {
  return std::find(cell.best.begin(), cell.best.end(), level) != cell.best.end();
}

// A line: the values of all axes but one, and its cells along that one.
struct GridLine {
  std::size_t axis;
  std::vector<std::string> at;
  std::vector<const GridCell*> cells;
};

void add_crossings(const Grid& grid, const GridLine& along, const std::string& first, const std::string& second,
                   std::vector<Crossing>& all) {
  const auto& [axis, at, cells] = along;
  double minimum_effect = 0;
  std::vector<const stats::Comparison*> line;
  for (const auto* cell : cells) {
    line.push_back(cell ? cell->compared(first, second) : nullptr);
    if (cell) minimum_effect = std::max(minimum_effect, cell->minimum_effect);
  }
  const auto ahead = ahead_along(line, minimum_effect);
  for (const auto& bracket : brackets_of(ahead)) {
    const bool first_leads = ahead[bracket.from] == FasterLevel::first;
    const auto &before = first_leads ? first : second, &after = first_leads ? second : first;
    all.push_back(
        {.axis = axis,
         .at = at,
         .before = before,
         .after = after,
         .from = grid.axes[axis].values[bracket.from],
         .to = grid.axes[axis].values[bracket.to],
         .of_the_fastest = may_be_fastest(*cells[bracket.from], before) && may_be_fastest(*cells[bracket.to], after)});
  }
}

// The level that is alone the fastest at every combination of the other axes with this value; "": there is none.
std::string fastest_at(const Grid& grid, std::size_t axis, const std::string& value) {
  std::size_t combinations = 1, seen = 0;
  for (std::size_t i = 0; i < grid.axes.size(); ++i)
    if (i != axis) combinations *= grid.axes[i].values.size();
  std::string level;
  for (const auto& cell : grid.cells) {
    if (cell.at[axis] != value) continue;
    ++seen;
    if (cell.best.size() != 1 || !(level.empty() || level == cell.best.front())) return {};
    level = cell.best.front();
  }
  return seen < combinations ? std::string() : level;
}

void add_stretches(const Grid& grid, std::size_t axis, std::vector<Stretch>& all) {
  std::vector<std::string> fastest;
  for (const auto& value : grid.axes[axis].values) fastest.push_back(fastest_at(grid, axis, value));
  const std::size_t last = fastest.size() - 1;
  if (!is_ordered(grid.axes[axis])) {
    for (std::size_t v = 0; v <= last; ++v)
      if (!fastest[v].empty()) all.push_back({.level = fastest[v], .axis = axis, .first = v, .last = v});
    return;
  }
  std::size_t up_to = 0, from = last;
  while (up_to < last && fastest[up_to + 1] == fastest[0]) ++up_to;
  while (from > 0 && fastest[from - 1] == fastest[last]) --from;
  if (!fastest[0].empty()) all.push_back({.level = fastest[0], .axis = axis, .first = 0, .last = up_to});
  if (!fastest[last].empty()) all.push_back({.level = fastest[last], .axis = axis, .first = from, .last = last});
}

}  // namespace

bool is_ordered(const GridAxis& axis) {
  return std::all_of(axis.values.begin(), axis.values.end(),
                     [](const std::string& value) { return strata::number<double>(value).has_value(); });
}

std::vector<FasterLevel> ahead_along(const std::vector<const stats::Comparison*>& line, double minimum_effect) {
  const auto known = static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](const auto* comparison) { return comparison != nullptr; }));
  std::vector<FasterLevel> ahead;
  for (const auto* comparison : line) {
    ahead.push_back(FasterLevel::undecided);
    if (!comparison) continue;
    const double width = stats::half_width_at(*comparison, tail_of(known)), lead = comparison->log_ratio.value;
    if (!std::isfinite(width) || !(std::abs(lead) > std::max(width, std::log1p(minimum_effect)))) continue;
    ahead.back() = lead > 0 ? FasterLevel::second : FasterLevel::first;
  }
  return ahead;
}

std::vector<Bracket> brackets_of(const std::vector<FasterLevel>& line) {
  std::vector<Bracket> brackets;
  std::optional<std::size_t> decided;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == FasterLevel::undecided) continue;
    if (decided && line[*decided] != line[i]) brackets.push_back({*decided, i});
    decided = i;
  }
  return brackets;
}

std::vector<Crossing> crossings_of(const Grid& grid) {
  std::vector<Crossing> all;
  for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
    if (!is_ordered(grid.axes[axis])) continue;
    for (const auto& at : lines_along(grid, axis)) {
      const GridLine line{axis, at, cells_along(grid, axis, at)};
      for (std::size_t i = 0; i < grid.levels.size(); ++i)
        for (std::size_t j = i + 1; j < grid.levels.size(); ++j)
          add_crossings(grid, line, grid.levels[i], grid.levels[j], all);
    }
  }
  std::stable_partition(all.begin(), all.end(), [](const Crossing& crossing) { return crossing.of_the_fastest; });
  return all;
}

std::vector<Stretch> stretches_of(const Grid& grid) {
  std::vector<Stretch> all;
  std::size_t combinations = 1;
  for (const auto& axis : grid.axes) combinations *= axis.values.size();
  const auto everywhere = [&](const std::string& level) {
    return grid.cells.size() >= combinations &&
           std::all_of(grid.cells.begin(), grid.cells.end(),
                       [&](const auto& cell) { return cell.best.size() == 1 && cell.best.front() == level; });
  };
  for (const auto& level : grid.levels)
    if (everywhere(level) && !grid.cells.empty())
      return {{.level = level, .axis = std::nullopt, .first = 0, .last = 0}};
  for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) add_stretches(grid, axis, all);
  return all;
}

Gap gap_of(const std::vector<const stats::Comparison*>& others) {
  const double near = std::log1p(kNear), far = std::log1p(kFar);
  double least = 0, most = 0;  // the fastest is no slower than the level itself
  for (const auto* other : others) {
    const double lead = other->log_ratio.value, width = stats::half_width_at(*other, tail_of(others.size()));
    if (!std::isfinite(lead) || !std::isfinite(width)) {
      most = std::numeric_limits<double>::infinity();
      continue;
    }
    least = std::max(least, lead - width);
    most = std::max(most, lead + width);
  }
  if (most <= near) return Gap::within;
  if (least > far) return Gap::far;
  return least > near && most <= far ? Gap::between : Gap::unknown;
}

std::vector<Standing> standings_of(const Grid& grid) {
  std::vector<Standing> all;
  for (const auto& name : grid.levels) {
    Standing own{.level = name};
    for (const auto& cell : grid.cells) {
      const auto level = cell.levels.find(name);
      if (level == cell.levels.end() || !std::isfinite(level->second.iteration_ms.value)) {
        ++own.without;
        continue;
      }
      ++own.points;
      const bool possible = may_be_fastest(cell, name);
      own.alone += possible && cell.best.size() == 1;
      own.open += possible && cell.best.size() > 1;
      std::vector<const stats::Comparison*> others;
      for (const auto& [pair, comparison] : cell.comparisons)
        if (pair.first == name) others.push_back(&comparison);
      switch (cell.reliable ? gap_of(others) : Gap::unknown) {
        case Gap::within:
          ++own.within;
          break;
        case Gap::between:
          ++own.between;
          break;
        case Gap::far:
          ++own.far;
          break;
        case Gap::unknown:
          ++own.unknown;
          break;
      }
    }
    all.push_back(std::move(own));
  }
  return all;
}

}  // namespace strata::analysis
