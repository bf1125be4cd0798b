// SPDX-License-Identifier: Apache-2.0
// The options of all verbs that capture a network.
#pragma once

#include <CLI/CLI.hpp>

#include "plan/options.hpp"

namespace strata::cli {

// Bounds on what input files may unpack to: --max-megapixels, for a verb that has --input-from already, and
// --max-expansion. They reach the processes that read the files as variables, not by the case: a bound makes no other
// question of it.
void add_limits(CLI::App& verb);

// --input, --size, --inputs, --input-from, --synthetic, --weights, --seed, with the limits of these files. `inputs`:
// how help begins, as "the test's inputs".
void add_input_options(CLI::App& verb, plan::Options& options, const std::string& inputs);

// --fresh. `timeout`: also --timeout, for verbs in which nothing else has one.
void add_capture_options(CLI::App& verb, plan::Options& options, bool timeout = true);

}  // namespace strata::cli
