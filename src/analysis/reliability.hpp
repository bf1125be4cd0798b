// SPDX-License-Identifier: Apache-2.0
// Whether times by the clock say anything of a case's levels: one rule for every verb. Where they do not, no ratio is
// told, nothing is ranked, and nothing is recommended; processor time is what may be told instead.
#pragma once

#include <vector>

#include "analysis/learning.hpp"
#include "stats/disturbed.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// What the cells of such numbers say.
inline const char* const kNotReliable = "not reliable";

// False: others took cores that the case's threads need, and with them most of what was timed.
bool is_reliable(const store::Case& run_case, const stats::CoreBudget& room, std::size_t disturbed, std::size_t timed);

// Of a training: an epoch is disturbed where its only thread waited for a core, or the case has more threads.
bool is_reliable(const store::Run& run, const store::Case& run_case, const std::vector<const Learning*>& levels);

}  // namespace strata::analysis
