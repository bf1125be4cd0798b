// SPDX-License-Identifier: Apache-2.0
// What a run with several environments (--env) says of them: which there were, and each level in one against the other.
#pragma once

#include <string>
#include <vector>

#include "analysis/result.hpp"
#include "requests/commands.hpp"
#include "store/record.hpp"

namespace strata::report {

// What a command about a row names beside its request: the run's store, and the interpreter that the row ran in.
requests::Named named_beside(const store::Run& run, const store::Row& row);

// "eager is 1.03 (1.01 to 1.05) times as fast in new as in old." of a case's `across_environments`; "" where it has
// none.
std::string across_sentence(const analysis::CaseResult& one_case);

// Packages that are not the same in all environments: the name, then the version in each, "" where it is missing.
std::vector<std::vector<std::string>> package_differences(const std::vector<nlohmann::json>& environments);

}  // namespace strata::report
