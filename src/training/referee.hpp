// SPDX-License-Identifier: Apache-2.0
// A worker of eager that learns nothing itself: it repeats single steps and scores of the levels from their own states,
// to see whether they do in the middle of a training what was proven at its beginning.
#pragma once

#include <memory>
#include <optional>

#include "proof/late_step.hpp"
#include "training/learner.hpp"

namespace strata::training {

class Referee {
 public:
  Referee(const measure::Job& eager, const proof::TrainReference& reference) : job_(eager), reference_(reference) {}

  Try<void> start(const measure::SplitFiles& files, const std::vector<int>& cpus);

  // Step `step` of the order, `learner`'s next one, by both. A network with dropout does it without, and beside its
  // training (masks cannot be drawn twice alike): the learner's state is put back. Else it is a step of its training.
  // nullopt: its loss is not finite, so that there is nothing to compare.
  Try<std::optional<proof::OutputVerdict>> check_step(Learner& learner, const std::filesystem::path& order,
                                                      std::int64_t step);

  // The first images of a split, scored by eager with the learner's weights, against what it said itself.
  Try<proof::OutputVerdict> check_score(Learner& learner, const std::string& split,
                                        const measure::SplitScore& reported);

  // Activations, gradients and weights by layer, of eager with the learner's state on the batch of its next step, which
  // is not made. Empty: there is no way to tell.
  Try<std::vector<core::LayerSize>> layer_sizes(Learner& learner, const std::filesystem::path& order);

  void rest() { session_->process().pause(); }

 private:
  struct Step {
    measure::TrainState after;
    double loss;
  };
  // `done`: steps of the optimiser before it.
  Try<Step> step_from(const std::filesystem::path& state, std::int64_t done, const std::filesystem::path& order,
                      std::int64_t step);

  measure::Job job_;
  const proof::TrainReference& reference_;
  std::unique_ptr<measure::Session> session_;
};

}  // namespace strata::training
