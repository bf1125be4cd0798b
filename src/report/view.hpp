// SPDX-License-Identifier: Apache-2.0
// Computes the result object (docs/results_schema.md) of a stored run: every statistic again from the raw samples.
#pragma once

#include <nlohmann/json.hpp>

#include "store/record.hpp"

namespace strata::report {

nlohmann::json view(const store::Run& run);

}  // namespace strata::report
