// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, as far as it was ever seen: the roofline of a case, and what its levels' times are
// held against. A peak that is measured beside other programs is too low and would accuse sound levels.
#pragma once

#include "store/store.hpp"

namespace strata::measure {

using store::Json;

// Measures the peak for the case's threads (a tenth of `budget_s`, 0.2 to 1 s) and gives the best that the store knows
// of this machine, these threads and these instructions; `quiet`: it was seen at least once with the cores to itself.
// Rates of 0 for what is not measured: other modes than fp32, GPUs. Error: the store's.
Result<store::Limits> limits_of(const core::Case& question, const Json& machine, double budget_s, store::Store& store);

}  // namespace strata::measure
