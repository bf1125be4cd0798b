// SPDX-License-Identifier: Apache-2.0
// What --dynamic found of a row, from its raw samples: first calls, recompilations, the open artefact against the
// fixed.
#pragma once

#include "analysis/result.hpp"
#include "stats/disturbed.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// nullopt if the run did not ask for it. `sigma`: the process effect; `minimum`: the least effect that is claimed; not
// `reliable`: others had the cores, so none is.
std::optional<OpenBatch> open_batch(const store::Row& row, const stats::CoreBudget& room, double sigma, double minimum,
                                    bool reliable = true);

}  // namespace strata::analysis
