// SPDX-License-Identifier: Apache-2.0
// What --dynamic found of a row, from its raw samples: first calls, recompilations, the open artefact against the
// fixed.
#pragma once

#include <nlohmann/json.hpp>

#include "stats/disturbed.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// `dynamic` of a row (docs/results_schema.md); null if the run did not ask for it. `sigma`: the process effect;
// `minimum`: the least effect that is claimed; not `reliable`: others had the cores, so none is.
nlohmann::json dynamic_view(const store::Row& row, const stats::Room& room, double sigma, double minimum,
                            bool reliable = true);

}  // namespace strata::analysis
