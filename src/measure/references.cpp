// SPDX-License-Identifier: Apache-2.0
#include "measure/references.hpp"

namespace strata::measure {

Result<void> References::open(const plan::Bundle& bundle, const plan::Bundle* strict) {
  if (bundle.question.mode == core::Mode::train) {
    auto reference = proof::TrainReference::open(bundle.folder);
    if (!reference) return tl::unexpected(reference.error());
    training_ = std::move(*reference);
    if (strict) {
      auto opened = proof::TrainReference::open(strict->folder);
      if (!opened) return tl::unexpected(opened.error());
      strict_training_ = std::move(*opened);
    }
    const auto strength = proof::train_power(strict_training_ ? *strict_training_ : *training_);
    power_.weak = strength.weak;
    power_.reason = strength.reason;
    return {};
  }
  auto reference = proof::Reference::open(bundle.folder);
  if (!reference) return tl::unexpected(reference.error());
  outputs_ = std::move(*reference);
  if (strict) {
    auto opened = proof::Reference::open(strict->folder);
    if (!opened) return tl::unexpected(opened.error());
    strict_ = std::move(*opened);
  }
  power_ = proof::power(strict_ ? *strict_ : *outputs_);
  return {};
}

Judge References::judge() const {
  const auto address = [](const auto& held) { return held ? &*held : nullptr; };
  return {address(outputs_), address(strict_), address(training_), address(strict_training_)};
}

Judge References::strict_judge() const {
  const auto all = judge();
  return {all.strict, nullptr, all.strict_training, nullptr};
}

proof::Certificate References::certificate(const Player& player) const {
  if (strict_training_) {
    const proof::StrictTraining strict{*strict_training_, player.strict_training};
    return proof::train_certificate(*training_, player.evidence, player.training, &strict);
  }
  if (training_) return proof::train_certificate(*training_, player.evidence, player.training);
  if (strict_) return proof::certificate(*strict_, power_, player.evidence, &*outputs_);
  return proof::certificate(*outputs_, power_, player.evidence);
}

}  // namespace strata::measure
