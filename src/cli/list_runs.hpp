// SPDX-License-Identifier: Apache-2.0
// `list runs` and `runs list` are one.
#pragma once

#include <CLI/CLI.hpp>

namespace strata::cli {

// Adds the list of stored runs to a verb under this name.
void add_list_of_runs(CLI::App& verb, const char* name, int& exit_code);

}  // namespace strata::cli
