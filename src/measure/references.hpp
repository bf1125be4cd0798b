// SPDX-License-Identifier: Apache-2.0
// What the levels of one case are judged against: the references of its mode, and how strong a proof they make.
#pragma once

#include "measure/participant.hpp"
#include "plan/bundle.hpp"
#include "proof/certificate.hpp"

namespace strata::measure {

class References {
 public:
  // `strict`: the same case in float32, of one in another precision; else nullptr. Error: a file that cannot be read.
  Result<void> open(const plan::Bundle& bundle, const plan::Bundle* strict);

  bool trains() const { return training_.has_value(); }
  // Of mode infer.
  const proof::Reference& outputs() const { return *outputs_; }
  const proof::Power& power() const { return power_; }
  ProofReferences judge() const;
  // Of the pass in float32; only where the case's precision is another.
  ProofReferences strict_judge() const;
  // What is proven of a level so far.
  proof::Certificate certificate(const Participant& participant) const;

 private:
  std::optional<proof::Reference> outputs_, strict_;
  std::optional<proof::TrainReference> training_, strict_training_;  // in place of those two in mode train
  proof::Power power_;
};

}  // namespace strata::measure
