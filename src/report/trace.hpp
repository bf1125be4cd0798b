// SPDX-License-Identifier: Apache-2.0
// Profiles as a trace, in the format of PyTorch's profiler: Chrome's trace events.
#pragma once

#include <string>

#include "analysis/result.hpp"
#include "common/result.hpp"

namespace strata::report {

// One iteration of each profiled level, in a process of its own: its operations with their module, shapes and kernel,
// inside of a step. Times are those of the profile, means over iterations, so that they begin at 0 for each level.
// Error: the run has no profile.
Result<std::string> trace_json(const analysis::RunResult& run);

}  // namespace strata::report
