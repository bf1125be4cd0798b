// SPDX-License-Identifier: Apache-2.0
// What a run with several environments (--env) says of them: which there were, and each level in one against the other.
#pragma once

#include <string>
#include <vector>

#include "analysis/case_statistics.hpp"
#include "report/access.hpp"
#include "requests/commands.hpp"

namespace strata::report {

// The name of a row's environment; null where there is one, or none.
Json environment_json(const store::Row& row);

// "2.15.0"; of several "2.14.1 in old, 2.15.0 in new".
std::string torch_versions(const Json& environments);

// What a command about a row names beside its request: the run's store, and the interpreter that the row ran in.
requests::Named named_beside(const store::Run& run, const store::Row& row);

// {"level", "variant", "from", "to", "ratio"} of each level that was measured in the first environment that it has a
// number in and in another; `ratio` as of a row (docs/results_schema.md).
Json across_environments(const analysis::CaseStatistics& numbers);

// "eager is 1.03 (1.01 to 1.05) times as fast in new as in old." of a case's `across_environments`; "" where it has
// none.
std::string across_sentence(const Json& one_case);

// Packages that are not the same in all environments: the name, then the version in each, "" where it is missing.
std::vector<std::vector<std::string>> package_differences(const Json& environments);

}  // namespace strata::report
