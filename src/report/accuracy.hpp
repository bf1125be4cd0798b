// SPDX-License-Identifier: Apache-2.0
// Accuracy against speed: the cases of a run that differ in their precision alone, side by side. Ratios across modes
// stand here and nowhere else.
#pragma once

#include <nlohmann/json.hpp>

#include "store/record.hpp"

namespace strata::report {

// `accuracy` of docs/results_schema.md. `cases`: the views of the run's cases, in order.
nlohmann::json accuracy(const store::Run& run, const nlohmann::json& cases);

// The mean of paired differences and its 99% interval by Student's t: {"value","low","high"}; ends are null for fewer
// than two.
nlohmann::json paired_difference(const std::vector<double>& level, const std::vector<double>& reference);

}  // namespace strata::report
