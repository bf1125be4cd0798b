// SPDX-License-Identifier: Apache-2.0
// What the verbs that capture a network have in common: their options, and what they say meanwhile.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/say.hpp"
#include "plan/bundle.hpp"
#include "plan/options.hpp"

namespace strata::cli {

// --fresh. `timeout`: also --timeout, for verbs in which nothing else has one.
void add_capture_options(CLI::App& verb, plan::Options& options, bool timeout = true);

// `strict` as in plan::Wishes. What is referred to must outlive the result.
plan::Wishes wishes_of(const plan::Options& options, ProgressLine& line, const plan::Bundle* strict = nullptr);

}  // namespace strata::cli
