// SPDX-License-Identifier: Apache-2.0
// What each level needs to meet a limit on a quantile of the time of one request (`--slo`).
#pragma once

#include "analysis/result.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// Adds `slo` to the first case of those that differ in their batch only, from the points of all of them; nothing where
// none was asked for. `cases`: the results of the run's cases, in order. Its sentences are report/slo.hpp's.
void add_slo(const store::Run& run, std::vector<CaseResult>& cases);

}  // namespace strata::analysis
