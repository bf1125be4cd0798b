// SPDX-License-Identifier: Apache-2.0
// `strata level new` (writes a skeleton) and `strata level check` (the protocol's conformance suite).
#pragma once

#include <CLI/CLI.hpp>

namespace strata::cli {

// Adds the verb `level` with its two verbs; the chosen one runs as a CLI11 callback and writes its exit code.
void add_level_verbs(CLI::App& app, int& exit_code);

}  // namespace strata::cli
