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
  std::string label;                // what it is called
};

// Those with a finite x; y may be a gap. Of x, y and a band of different lengths, what all of them have.
std::vector<Point> points_of(const Line& line);

// At most `most` (2 or more) points of a line, with the least and the largest value of each stretch, so that no spike
// is lost.
std::vector<Point> thinned(std::vector<Point> points, std::size_t most);

// Points with names of their own are read one by one: no curve, and no value at a place.
bool has_labels(const Figure& figure);
// "144 points of 5 lines, drawn in the HTML report": what formats without pictures say of such a figure.
std::string shown_elsewhere(const Figure& figure);

// A row a point: panel (where there are several), line, its name (where points have one), x, y with its band. Of each
// line at most `most` points, evenly, the first and the last among them.
Table points_table(const Figure& figure, std::size_t most);

// A row a line, a column a place on the x axis, at most `most`: each line's last value up to there.
Table places_table(const Panel& panel, std::size_t most);

// A heat map's values as a table.
Table fields_table(const HeatMap& map);

// A row for each row of bars, a column for each part, and for each of the marks.
Table bars_table(const Bars& bars);

// A row for each row and layer of a surface, a column for each of its columns; a field without a number says why.
Table layers_table(const Surface& surface);
// nullptr: the layer does not reach there.
const SurfaceField* field_of(const Layer& layer, std::size_t row, std::size_t column);

// What a field reads in place of its number; nullptr: nothing.
const std::string* label_of(const HeatMap& map, std::size_t row, std::size_t column);

}  // namespace strata::document
