// SPDX-License-Identifier: Apache-2.0
// What document.js draws figures from: values, titles and the place of each line's colour; never markup.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "report/document.hpp"

namespace strata::document {

// A place for each group of lines, in the order in which a document names them first.
class Colours {
 public:
  explicit Colours(const Document& document);
  int of(const Line& line) const;
  int of(const std::string& group) const;

 private:
  std::map<std::string, int> places_;
};

// {"kind": "lines", "panels": [{title, x, y, shaded: [{from, to}], borders, lines: [{name, colour, dashed, marks,
// shows_labels, x, y, low, high, labels}]}], "choices": [{title, option}]}. A line of very many points is thinned to
// what a screen can show.
nlohmann::json figure_data(const Figure& figure, const Colours& colours);

// {"kind": "bars", rows, parts: [{name, values}], marks: [the same], scale}.
nlohmann::json bars_data(const Bars& bars);

// {"kind": "heat", rows, columns, row_title, column_title, values, scale, middle, labels, colours, choices};
// colours: of the categories of the scale.
nlohmann::json heat_map_data(const HeatMap& map, const Colours& colours);

// {"kind": "surface", rows, columns, row_title, column_title, layers: [{name, colour, values, words, labels}], scale,
// middle, choices}; words and labels: of each field with its interval and outcome, and where there is no room for them.
nlohmann::json surface_data(const Surface& surface, const Colours& colours);

}  // namespace strata::document
