// SPDX-License-Identifier: Apache-2.0
// A worker of eager that learns nothing itself: it repeats a few steps and scores of the levels from their own states,
// to see whether they do in the middle of a training what was proven at its beginning.
#pragma once

#include <memory>
#include <optional>

#include "measure/repeated_steps.hpp"
#include "proof/late_step.hpp"
#include "training/learner.hpp"

namespace strata::training {

// Steps that a level made: the states before and after them, and their losses.
struct DoneWindow {
  std::shared_ptr<const session::TrainState> before, after;
  std::vector<double> losses;
  std::int64_t first = 0;  // of the epoch's order
};

struct Judgement {
  measure::StepsVerdict verdict{};
  bool rough = false;
};

class Referee {
 public:
  Referee(const session::Job& eager, const proof::TrainReference& reference) : job_(eager), reference_(reference) {}

  Try<void> start(const session::SplitFiles& files, const std::vector<int>& cpus);

  // Steps that a level made, by eager from the state before them, and again from that with every weight moved by a unit
  // in the last place. Longer ones over which that carries too far are not judged (`rough`); nor is a loss that is not
  // finite.
  Try<Judgement> check_window(const DoneWindow& done, const std::filesystem::path& order, double spread);
  // Of a network with dropout, whose masks cannot be drawn twice alike: the learner's next `steps` steps without it, by
  // both, beside its training: its state is put back.
  Try<Judgement> check_beside(Learner& learner, const std::filesystem::path& order, std::int64_t steps);
  bool beside() const { return reference_.has_dropout(); }

  // The first images of a split, scored by eager with the weights of a state, against what the level said itself.
  Try<proof::OutputVerdict> check_score(const std::filesystem::path& state, std::int64_t step, const std::string& split,
                                        const session::SplitScore& reported);

  // Activations, gradients and weights by layer, of eager with the learner's state on the batch of its next step, which
  // is not made. Empty: there is no way to tell.
  Try<std::vector<core::LayerSize>> layer_sizes(Learner& learner, const std::filesystem::path& order);

  void rest() { session_->process().pause(); }

 private:
  // `done`: steps of the optimiser before them.
  Try<measure::RepeatedSteps> steps_from(const std::filesystem::path& state, std::int64_t done,
                                         const std::filesystem::path& order, std::int64_t first, std::int64_t count);

  session::Job job_;
  const proof::TrainReference& reference_;
  std::unique_ptr<session::Session> session_;
};

}  // namespace strata::training
