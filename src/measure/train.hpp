// SPDX-License-Identifier: Apache-2.0
// The passes of a level that trains: its proof alone, the probe step of each restart, the step after the last timed
// block, its phases.
#pragma once

#include "measure/participant.hpp"
#include "measure/replay.hpp"

namespace strata::measure {

// Proves a loaded session on all weight sets; unless the capture is light also dropout, in float32 the optimiser rule
// by rule, and in another precision that it computes in it. Fills participant.training. An error ends the row.
Try<void> prove_training(Participant& participant, Session& session, const ProofReferences& judge);

// After warm-up: one probe step, judged, then the timed weights and the case's optimiser back, warm again. Failure: not
// equal, or the worker's.
Try<void> probe_restart(Participant& participant, Session& session, const proof::TrainReference& reference);

// The timed weights, the case's optimiser and dropout as given, and warm.
Try<void> start_training(Session& session, const proof::TrainReference& reference);

// After the last timed block, with nothing loaded again: one more timed iteration on a drawn input between two states,
// and the gradient at the first. A light proof judges a drawn quarter of the parameters, at least eight, others in each
// restart. A training that has diverged begins again first. How long it takes to read states becomes a part of its
// conduct. Failure: it is not the optimiser's step, or the worker's.
Try<void> check_last_step(Participant& participant, Session& session, const proof::TrainReference& reference,
                          stats::Random& random, const Replay& replay);

// Some of the timed steps again. Failure: they lead elsewhere, or the worker's.
Try<void> repeat_timed_steps(Participant& participant, Session& session, const proof::TrainReference& reference,
                             const Replay& replay);

// Times of each phase, by themselves; added to participant.phases. What the level refuses leaves the phases empty.
// Failure: its answer breaks the protocol, or its process ended.
Try<void> profile_phases(Participant& participant, Session& session, const proof::TrainReference& reference);

// The loss of a timed block must be there; one that is not finite is of a training that has diverged.
proof::OutputVerdict check_loss(const SafeTensors& output, int index);

}  // namespace strata::measure
