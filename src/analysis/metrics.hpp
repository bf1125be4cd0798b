// SPDX-License-Identifier: Apache-2.0
// The metrics of a case's rows, as they are stored (core/metric.hpp): the numbers that its report prints, and no
// others.
#pragma once

#include <vector>

#include "store/store.hpp"

namespace strata::analysis {

// Of every row, judged (analysis/judge_stored.hpp). Only `measured` rows have numbers, but for what their proof says.
// What is not known has no metric.
std::vector<store::Metric> metrics_of(const store::Run& run, const store::Case& run_case);

// Brings the metrics of stored runs up to date with what is stored of their samples.

// Of one case, when it has ended. Errors: the store's.
Result<void> store_metrics(store::Store& store, const std::string& run_id, const std::string& case_key);
// Of all cases of a run; rows that it left without a verdict are judged from their blocks.
Result<void> store_metrics(store::Store& store, const std::string& run_id);

}  // namespace strata::analysis
