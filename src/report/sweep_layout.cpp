// SPDX-License-Identifier: Apache-2.0
#include "report/sweep_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace strata::report {
namespace {

std::optional<std::size_t> axis_called(const analysis::Grid& grid, const char* name) {
  for (std::size_t i = 0; i < grid.axes.size(); ++i)
    if (grid.axes[i].name == name) return i;
  return std::nullopt;
}

}  // namespace

SweepLayout::SweepLayout(const analysis::Grid& grid)
    : grid_(grid), rows_(axis_called(grid, "size")), columns_(axis_called(grid, "batch")) {
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    if (i == columns_ || i == rows_) continue;
    if (!columns_)
      columns_ = i;
    else if (!rows_)
      rows_ = i;
    else
      others_.push_back(i);
  }
  std::map<std::vector<std::size_t>, std::vector<std::string>> sorted;
  for (const auto& cell : grid.cells) {
    std::vector<std::size_t> places;
    std::vector<std::string> map;
    for (const auto i : others_) {
      const auto& values = grid.axes[i].values;
      places.push_back(static_cast<std::size_t>(std::find(values.begin(), values.end(), cell.at[i]) - values.begin()));
      map.push_back(cell.at[i]);
    }
    sorted.emplace(std::move(places), std::move(map));
  }
  for (auto& [places, map] : sorted) maps_.push_back(std::move(map));
}

std::string SweepLayout::words_of(const std::vector<std::string>& map) const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < map.size(); ++i)
    words.push_back(fmt::format("{} {}", grid_.axes[others_[i]].name, map[i]));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<document::Choice> SweepLayout::choices_of(const std::vector<std::string>& map) const {
  std::vector<document::Choice> choices;
  for (std::size_t i = 0; i < map.size(); ++i) choices.push_back({grid_.axes[others_[i]].name, map[i]});
  return choices;
}

bool SweepLayout::is_chosen(std::size_t axis) const {
  return std::find(others_.begin(), others_.end(), axis) != others_.end();
}

bool SweepLayout::is_on(const std::vector<std::string>& map, const std::vector<std::string>& at) const {
  for (std::size_t i = 0; i < map.size(); ++i)
    if (at[others_[i]] != map[i]) return false;
  return true;
}

const analysis::GridCell* SweepLayout::cell_at(const std::vector<std::string>& map, std::size_t row,
                                               std::size_t column) const {
  std::vector<std::string> at(grid_.axes.size());
  for (std::size_t i = 0; i < map.size(); ++i) at[others_[i]] = map[i];
  if (rows_) at[*rows_] = rows()->values[row];
  if (columns_) at[*columns_] = columns()->values[column];
  return grid_.find(at);
}

}  // namespace strata::report
