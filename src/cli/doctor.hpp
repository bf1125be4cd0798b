// SPDX-License-Identifier: Apache-2.0
// `strata doctor`: what this machine can measure and what not, each with reason and remedy. Changes nothing.
#pragma once

#include <CLI/CLI.hpp>

namespace strata::cli {

// Adds the verb `doctor`; it runs as a CLI11 callback and writes its exit code (0 whatever it finds, 2 bad usage).
void add_doctor(CLI::App& app, int& exit_code);

}  // namespace strata::cli
