// SPDX-License-Identifier: Apache-2.0
// A training while it runs: data, capture, initial weights, a training of each initialisation.
#pragma once

#include "engine/stored_run.hpp"
#include "engine/training_plan.hpp"

namespace strata::engine {

// Every finished epoch is in the store. `plan` gets the images that --scale leaves. Error: nothing could be trained, or
// the store's.
Result<measure::Outcome> run_training(TrainingPlan& plan, const Prepared& ready, measure::MachineFacts& facts,
                                      store::Store& store, StoredRun& stored, EventSink& events);

}  // namespace strata::engine
