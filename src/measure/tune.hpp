// SPDX-License-Identifier: Apache-2.0
// Finding the best of a level's variants by short turns of their own, before anything of the case is measured.
#pragma once

#include "measure/interleave.hpp"
#include "measure/participant.hpp"

namespace strata::measure {

struct Choice {
  Participant best;  // as it was given: without the times that chose it
  store::Tuning record;
};

// Lets copies of the candidates that are still active, if there are two, take turns as planned (a trial) and gives the
// one that is estimated to be fastest by at least 1%; else the first, the default. Each is compared with the first that
// was measured, as levels are (stats/compare.hpp). Nothing is written but `record`. Error: the turns'.
Result<Choice> choose_variant(const std::vector<Participant>& candidates, const ProofReferences& judge,
                              const InterleavePlan& plan, const Progress& progress);

// The record of a level without a variant to try; `elsewhere`: "freezing: no mode train" of each that it has.
store::Tuning nothing_to_tune(const std::vector<std::string>& elsewhere);

}  // namespace strata::measure
