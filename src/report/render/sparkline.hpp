// SPDX-License-Identifier: Apache-2.0
// A line of a figure as one row of characters, low to high.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "report/document.hpp"

namespace strata::document {

// Least and largest; of a logarithmic axis, of the values above zero alone.
struct Range {
  double low, high;
};

// Over all lines of a panel; nullopt: nothing finite.
std::optional<Range> range_of_x(const Panel& panel);
std::optional<Range> range_of_y(const Panel& panel);

// `width` characters for the panel's whole x axis, all lines of the panel on one scale; a space where the line has
// nothing. Unicode blocks, or ASCII from "_" to "#".
std::string sparkline(const Line& line, const Panel& panel, std::size_t width, bool unicode);

}  // namespace strata::document
