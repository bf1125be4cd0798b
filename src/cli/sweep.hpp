// SPDX-License-Identifier: Apache-2.0
// A sweep as `sweep` runs it and `resume` goes on with it.
#pragma once

#include "cli/compare.hpp"

namespace strata::cli {

// Those of compare, of which --budget is then that of the whole sweep, --full-proof and --retry.
void add_sweep_options(CLI::App& verb, CompareArguments& a);

// Checks, runs, shows: the exit code, or what kept it from its end.
Result<int> run_sweep(CompareArguments& a);

}  // namespace strata::cli
