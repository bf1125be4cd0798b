// SPDX-License-Identifier: Apache-2.0
// Options under the names that they had before: still accepted on the command line, in suites and in stored runs.
// `--maths bf16` is `--precision bf16`, and `--precision 1%`, a share, is `--ci-width 1%`.
#pragma once

#include <string>
#include <vector>

#include "suite/suite.hpp"

namespace strata::requests {

// The words of a command line with today's names; those behind `--` are another program's and stay.
std::vector<std::string> with_current_names(std::vector<std::string> words);

// The keys of a suite's defaults and entries with today's names.
void use_current_names(suite::Suite& suite);

}  // namespace strata::requests
