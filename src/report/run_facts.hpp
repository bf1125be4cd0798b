// SPDX-License-Identifier: Apache-2.0
// What stands at the end of every document of a run: machine, PyTorch, the suite that it is part of, run, command.
#pragma once

#include <vector>

#include "report/document.hpp"
#include "store/record.hpp"

namespace strata::report {

std::vector<document::Fact> run_facts(const store::Run& run);
// Which run it is, its state, and how often it was resumed: for every row of a CSV.
std::vector<document::Fact> run_marks(const store::Run& run);

}  // namespace strata::report
