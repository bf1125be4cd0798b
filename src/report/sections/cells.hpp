// SPDX-License-Identifier: Apache-2.0
// Cells of tables from a result object (docs/results_schema.md).
#pragma once

#include <string>
#include <string_view>

#include "report/access.hpp"
#include "report/document.hpp"

namespace strata::report {

inline constexpr double kSecondsPerMs = 1e-3;

// The number at a dotted path, times `factor`; absent where it is unknown.
document::Cell value_cell(const Json& node, std::string_view path, document::Format format, double factor = 1);

// The same of milliseconds, as a time.
document::Cell time_cell(const Json& node, std::string_view path);

// {value, low, high} with its interval; absent where there is none.
document::Cell estimate_cell(const Json& estimate, document::Format format, double factor = 1);

// "faster", "slower", "same within 4.1%", "inconclusive" of a ratio with its verdict; absent without one.
document::Cell verdict_cell(const Json& ratio);

// "out of memory: its first sentence".
document::Absent absent_for(const std::string& state, const std::string& reason);

document::Column left_column(std::string id, std::string title);

// Levels with a number that figures show: harness levels would squeeze the rest into a corner.
std::vector<const Json*> drawn_rows(const Json& one_case);

// Of each of these rows the number at the path, times `factor`; not a number where it is unknown.
std::vector<double> values_of(const std::vector<const Json*>& rows, std::string_view path, double factor);
std::vector<std::string> names_of(const std::vector<const Json*>& rows);

}  // namespace strata::report
