// SPDX-License-Identifier: Apache-2.0
// One row of a case's result, from what is stored of it.
#pragma once

#include "analysis/case_statistics.hpp"
#include "analysis/result.hpp"

namespace strata::analysis {

// `row` is one of the case that `statistics` is of. `reason_short` stays empty where its proof gave none.
RowResult row_result(const store::Run& run, const store::Case& run_case, const store::Row& row,
                     const CaseStatistics& statistics);

// Settings without what `facts` counts too (graphs, guards, ...), also in objects within: a level reports settings when
// it has loaded the network and facts when all is measured, so that only the facts hold for the whole run.
nlohmann::json settings_beside(const nlohmann::json& settings, const nlohmann::json& facts);

}  // namespace strata::analysis
