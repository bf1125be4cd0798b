// SPDX-License-Identifier: Apache-2.0
// From stored blocks to what the statistics take.
#pragma once

#include <string>
#include <vector>

#include "stats/compare.hpp"
#include "stats/disturbed.hpp"
#include "store/record.hpp"

namespace strata::analysis {

inline constexpr double kMinimumEffect = 0.01;  // smaller differences are never claimed (docs/measuring.md)

// The blocks of a case: medians in ns, NaN for missing or disturbed ones, instance 0 or 1.
stats::Blocks medians(const std::vector<const store::Row*>& rows, const stats::CoreBudget& room, int instance);

// The blocks of a row's two instances, of a run with --aa: a restart's rounds hold both.
stats::Blocks twins(const store::Row& row, const stats::CoreBudget& room);

// Why each block of one row and instance was disturbed ("" = not), in the order of row.blocks; blocks of the other
// instance stay "".
std::vector<std::string> disturbances(const store::Row& row, const stats::CoreBudget& room);

// What the threads of a case have to run on, of a machine as probe::machine() describes it.
stats::CoreBudget core_budget_of(const core::Case& question, const store::Json& machine);

}  // namespace strata::analysis
