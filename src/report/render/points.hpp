// SPDX-License-Identifier: Apache-2.0
// What is on the lines of a figure: points, and figures and heat maps as tables, for formats and readers without
// pictures.
#pragma once

#include <cstddef>
#include <vector>

#include "report/document.hpp"

namespace strata::document {

struct Point {
  double x, y;
  std::optional<double> low, high;  // both or none
};

// Those with a finite x; y may be a gap. Of x, y and a band of different lengths, what all of them have.
std::vector<Point> points_of(const Line& line);

// At most `most` (2 or more) points of a line, with the least and the largest value of each stretch, so that no spike
// is lost.
std::vector<Point> thinned(std::vector<Point> points, std::size_t most);

// A row a point: panel (where there are several), line, x, y with its band. Of each line at most `most` points, evenly,
// the first and the last among them.
Table points_table(const Figure& figure, std::size_t most);

// A row a line, a column a place on the x axis, at most `most`: each line's last value up to there.
Table places_table(const Panel& panel, std::size_t most);

// A heat map's values as a table.
Table fields_table(const HeatMap& map);

// What a field reads in place of its number; nullptr: nothing.
const std::string* label_of(const HeatMap& map, std::size_t row, std::size_t column);

}  // namespace strata::document
