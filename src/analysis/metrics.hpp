// SPDX-License-Identifier: Apache-2.0
// The metrics of a case's rows, as they are stored (core/metric.hpp): the numbers that its report prints, and no
// others.
#pragma once

#include <vector>

#include "store/record.hpp"

namespace strata::analysis {

// Of every row, judged (measure/judge_stored.hpp). Only `measured` rows have numbers, but for what their proof says.
// What is not known has no metric.
std::vector<store::Metric> metrics_of(const store::Run& run, const store::Case& run_case);

}  // namespace strata::analysis
