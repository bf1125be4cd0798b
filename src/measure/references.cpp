// SPDX-License-Identifier: Apache-2.0
#include "measure/references.hpp"

namespace strata::measure {

Result<void> References::open(const plan::Bundle& bundle, const plan::Bundle* strict) {
  if (bundle.question.mode == core::Mode::train) {
    training_ = STRATA_TRY(proof::TrainReference::open(bundle.folder));
    if (strict) {
      strict_training_ = STRATA_TRY(proof::TrainReference::open(strict->folder));
    }
    const auto strength = proof::train_power(strict_training_ ? *strict_training_ : *training_);
    power_.weak = strength.weak;
    power_.reason = strength.reason;
    return {};
  }
  outputs_ = STRATA_TRY(proof::Reference::open(bundle.folder));
  if (strict) {
    strict_ = STRATA_TRY(proof::Reference::open(strict->folder));
  }
  power_ = proof::power(strict_ ? *strict_ : *outputs_);
  return {};
}

ProofReferences References::judge() const {
  const auto address = [](const auto& held) { return held ? &*held : nullptr; };
  return {.outputs = address(outputs_),
          .strict = address(strict_),
          .training = address(training_),
          .strict_training = address(strict_training_)};
}

ProofReferences References::strict_judge() const {
  const auto all = judge();
  return {.outputs = all.strict, .strict = nullptr, .training = all.strict_training, .strict_training = nullptr};
}

proof::Certificate References::certificate(const Participant& participant) const {
  if (strict_training_) {
    const proof::StrictTraining strict{*strict_training_, participant.strict_training};
    return proof::train_certificate(*training_, participant.evidence, participant.training, &strict);
  }
  if (training_) return proof::train_certificate(*training_, participant.evidence, participant.training);
  if (strict_) return proof::certificate(*strict_, power_, participant.evidence, &*outputs_);
  return proof::certificate(*outputs_, power_, participant.evidence);
}

}  // namespace strata::measure
