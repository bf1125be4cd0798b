// SPDX-License-Identifier: Apache-2.0
// One case of a comparison or a sweep: captured, measured at all its levels, its metrics stored.
#pragma once

#include "cli/compare.hpp"
#include "cli/say.hpp"
#include "cli/stored_run.hpp"
#include "plan/outgrown.hpp"

namespace strata::cli {

// `outgrown`: levels that take no part, since they ran out of memory at a smaller case; nullptr: all do. A case that
// the run that goes on has measured already is not measured again. Error: it cannot be captured, or the store's.
Result<measure::Outcome> run_case(const Prepared& ready, const nlohmann::json& spec, const plan::Outgrown* outgrown,
                                  measure::MachineFacts& facts, store::Store& store, StoredRun& stored,
                                  ProgressLine& line);

}  // namespace strata::cli
