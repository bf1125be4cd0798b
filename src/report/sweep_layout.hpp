// SPDX-License-Identifier: Apache-2.0
// The grid of a sweep as maps: two of its axes are columns and rows, each combination of the others is a map.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/surface.hpp"
#include "report/document.hpp"

namespace strata::report {

class SweepLayout {
 public:
  explicit SweepLayout(const analysis::Grid& grid);

  // Values of the axes that are neither rows nor columns, in the order of these axes' values; one empty combination
  // where there are none.
  const std::vector<std::vector<std::string>>& maps() const { return maps_; }
  const analysis::GridAxis* rows() const { return rows_ ? &grid_.axes[*rows_] : nullptr; }
  const analysis::GridAxis* columns() const { return columns_ ? &grid_.axes[*columns_] : nullptr; }
  std::size_t row_count() const { return rows_ ? rows()->values.size() : 1; }
  std::size_t column_count() const { return columns_ ? columns()->values.size() : 1; }

  // "mode train, threads 2"; "" where there is one map.
  std::string words_of(const std::vector<std::string>& map) const;
  std::vector<document::Choice> choices_of(const std::vector<std::string>& map) const;
  // Whether an axis is one of those that tell maps apart.
  bool is_chosen(std::size_t axis) const;
  // Whether the values of the grid's axes are those of the map's.
  bool is_on(const std::vector<std::string>& map, const std::vector<std::string>& at) const;
  // nullptr: not reached.
  const analysis::GridCell* cell_at(const std::vector<std::string>& map, std::size_t row, std::size_t column) const;

  // Of something that is drawn over rows and columns.
  template <class Plane>
  void name_plane(Plane& plane) const {
    plane.row_title = rows_ ? rows()->name : "";
    plane.column_title = columns_ ? columns()->name : "";
    plane.rows = rows_ ? rows()->values : std::vector<std::string>{"all"};
    plane.columns = columns_ ? columns()->values : std::vector<std::string>{"all"};
  }

 private:
  const analysis::Grid& grid_;
  std::optional<std::size_t> rows_, columns_;  // places in the grid's axes
  std::vector<std::size_t> others_;
  std::vector<std::vector<std::string>> maps_;
};

}  // namespace strata::report
