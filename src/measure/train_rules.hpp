// SPDX-License-Identifier: Apache-2.0
// The optimiser itself: SGD by differences of steps, Adam by steps from chosen states (docs/method.md, "Training").
#pragma once

#include "measure/participant.hpp"
#include "proof/train_checks.hpp"

namespace strata::measure {

// In strict float32, of a session that is loaded. Adds to participant.training.rules. An error ends the row.
Try<void> prove_rules(Participant& participant, Session& session, const proof::TrainReference& reference);

}  // namespace strata::measure
