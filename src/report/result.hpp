// SPDX-License-Identifier: Apache-2.0
// The result of a stored run (docs/results_schema.md): its numbers, every statistic again from the raw samples, and the
// sentences and commands that go with them.
#pragma once

#include "analysis/result.hpp"
#include "store/record.hpp"

namespace strata::report {

analysis::RunResult result_of(const store::Run& run);

}  // namespace strata::report
