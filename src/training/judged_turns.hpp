// SPDX-License-Identifier: Apache-2.0
// The turns of one level in one repeat, as its proof plan cuts them: its state is read around windows of a few steps,
// and what the referee needs of those that are judged is kept until the turn is over, so that no pause tells which.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/proof_plan.hpp"
#include "training/referee.hpp"

namespace strata::training {

// What a turn goes by.
struct Turn {
  std::filesystem::path order;
  int epoch = 0;
  std::int64_t end = 0;  // step of the epoch that it does not go beyond
  double seconds = 2;
};

struct JudgedSteps {
  proof::OutputVerdict verdict;
  std::int64_t first = 0, last = 0;  // of the epoch
};

// Steps that a level made, those of them in windows that could have been judged, and windows that were too rough to be,
// for which no other came.
struct WindowCounts {
  std::int64_t steps = 0, in_windows = 0, rough = 0;
  WindowCounts& operator+=(const WindowCounts& other);
};

class JudgedTurns {
 public:
  JudgedTurns(std::uint64_t seed, const RepeatShape& shape) : plan_(seed, shape) {}

  // `referee`: nullptr: no step can be judged, and none is looked at. `longest`: steps of a window that is not too
  // rough; less afterwards where one was.
  Try<std::vector<JudgedSteps>> take(Learner& learner, Referee* referee, const Turn& turn, std::int64_t& longest);

  const ProofPlan& plan() const { return plan_; }
  const WindowCounts& counts() const { return counts_; }

 private:
  Try<void> request(Learner& learner, Referee* referee, const Turn& turn, double left_s, std::int64_t longest);
  Try<void> window(Learner& learner, const Turn& turn, const NextRequest& request);
  Try<std::shared_ptr<const session::TrainState>> read_state(Learner& learner);

  ProofPlan plan_;
  std::shared_ptr<const session::TrainState> stored_;  // the state last read
  std::vector<DoneWindow> done_;                       // that are to be judged
  std::vector<std::pair<Judgement, Window>> beside_;   // that were judged beside the training
  double cost_ns_ = 20e6;                              // of a window, besides its steps
  bool small_ = true;                                  // states can be read often
  WindowCounts counts_;
};

}  // namespace strata::training
