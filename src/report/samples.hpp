// SPDX-License-Identifier: Apache-2.0
// Every raw sample of a run.
#pragma once

#include <string>

#include "store/record.hpp"

namespace strata::report {

// A line an iteration of the turns.
std::string samples_csv(const store::Run& run);
// One object: the blocks of the turns, and what the passes of their own (tuning, phases, start-up, clients, open
// batches, scores) stored of each row.
std::string samples_json(const store::Run& run);

}  // namespace strata::report
