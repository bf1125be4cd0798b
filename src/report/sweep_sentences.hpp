// SPDX-License-Identifier: Apache-2.0
// What a sweep says in words: who is the fastest where, where one level takes over from another, how far behind the
// fastest a level is. Only what the intervals decide (analysis/crossing.hpp).
#pragma once

#include <string>

#include "analysis/crossing.hpp"
#include "report/document.hpp"

namespace strata::report {

// A few sentences for somebody in a hurry.
std::string sweep_summary(const analysis::Grid& grid);

// How often the sentences may be wrong.
std::string sweep_error_rates();

// A row a level: alone the fastest, within 10% of it, more than 100% behind, and what nobody can tell.
document::Table standings_table(const analysis::Grid& grid);

// A row a crossing; one without rows where no axis is crossed.
document::Table crossings_table(const analysis::Grid& grid);

}  // namespace strata::report
