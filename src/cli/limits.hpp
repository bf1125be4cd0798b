// SPDX-License-Identifier: Apache-2.0
// Bounds on what input files may unpack to, as options of every verb that captures a network.
#pragma once

#include <CLI/CLI.hpp>

namespace strata::cli {

// --max-megapixels, for a verb that has --input-from already, and --max-expansion. They reach the processes that read
// the files as variables, not by the case: a bound makes no other question of it.
void add_limits(CLI::App& verb);

}  // namespace strata::cli
