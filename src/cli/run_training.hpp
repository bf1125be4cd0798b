// SPDX-License-Identifier: Apache-2.0
// What `train` does between its arguments and its report: data, capture, initial weights, a training of each scheme.
#pragma once

#include "cli/console.hpp"
#include "cli/stored_run.hpp"
#include "cli/train.hpp"

namespace strata::cli {

// Every finished epoch is in the store. Error: nothing could be trained, or the store's.
Result<measure::Outcome> run_training(TrainArguments& a, Prepared& ready, store::Store& store, StoredRun& stored,
                                      ProgressLine& line);

}  // namespace strata::cli
