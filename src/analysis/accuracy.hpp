// SPDX-License-Identifier: Apache-2.0
// Accuracy against speed: the cases of a run that differ in their precision alone, side by side. Ratios across modes
// stand here and nowhere else.
#pragma once

#include "analysis/result.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// `cases`: the results of the run's cases, in order.
std::vector<AccuracyGroup> accuracy(const store::Run& run, const std::vector<CaseResult>& cases);

// The mean of paired differences and its 99% interval by Student's t; without ends for fewer than two.
Estimate paired_difference(const std::vector<double>& level, const std::vector<double>& reference);

}  // namespace strata::analysis
