// SPDX-License-Identifier: Apache-2.0
// The numbers of a level at a point of a sweep, as tables and figures have them.
#pragma once

#include <string>

#include "analysis/surface.hpp"
#include "report/document.hpp"

namespace strata::report {

// A value with its interval, if both ends are known.
document::Number number_of(const stats::Interval& interval, document::Format format, double factor = 1);

// Behind a time of a point that is not reliable; no figure has such a number.
inline constexpr const char* kNotReliableMark = "?";

// In seconds.
document::Number iteration_time_of(const analysis::GridCell& cell, const analysis::CellLevel& level);
document::Number sample_time_of(const analysis::GridCell& cell, const analysis::CellLevel& level);

// Samples a second.
document::Number throughput_of(const analysis::GridCell& cell, const analysis::CellLevel& level);

// nullptr: there is no such point, or the level did not take part in it.
const analysis::CellLevel* level_in(const analysis::GridCell* cell, const std::string& name);

}  // namespace strata::report
