// SPDX-License-Identifier: Apache-2.0
// What a level shows before anything is timed: its start and memory, alone on the machine, and the proof on all weight
// sets.
#pragma once

#include "measure/participant.hpp"
#include "session/warm_processes.hpp"

namespace strata::measure {

// Fills the participant's start-up, memory, settings and evidence; drops it with its state when it fails or is not
// equal.
void run_alone(Participant& participant, const ProofReferences& judge, const Progress& progress);

// The same proof in a process that goes on (a walk of a sweep): neither start nor memory, which are not this case's
// alone there. The process waits in `warm` with the network loaded.
void prove_warm(Participant& participant, const ProofReferences& judge, session::WarmProcesses& warm,
                const std::vector<int>& cpus, const Progress& progress);

// For a case in another precision than float32: the level in strict float32 (`strict`: the job of that bundle), judged
// by that bundle's reference. run_alone then proves it in its mode.
void prove_structure(Participant& participant, const Job& strict, const ProofReferences& judge,
                     const Progress& progress);

// The same network in strict float32 with every leaf module's output shown: proves layer by layer. Drops nothing: what
// it finds goes into the evidence.
void run_deep(Participant& participant, const Job& job, const proof::Reference& reference);

}  // namespace strata::measure
