// SPDX-License-Identifier: Apache-2.0
// Which steps and scores of one level in one repeat are proven, drawn from the seed, and how its steps are cut into
// requests so that the level cannot tell them: windows of a few steps, before and after which its state is read, of
// which only the driver knows whether they are judged. Knows no process.
#pragma once

#include <cstdint>
#include <deque>
#include <set>

#include "stats/schedule.hpp"

namespace strata::training {

constexpr int kLongestWindow = 8;  // steps

// What a repeat of a level is.
struct RepeatShape {
  int epochs = 1;
  std::int64_t steps = 1;  // of an epoch
  int proofs = 0;          // windows that are judged, beside one that ends with the last step
};

// Epochs whose score is proven: the first, the last, and two more.
std::set<int> epochs_to_score(stats::Random& random, int epochs);

// Steps `first` to `first + steps - 1` of an epoch.
struct Window {
  int epoch = 0;
  std::int64_t first = 0, steps = 1;
};

// What the next request of a level is.
struct NextRequest {
  std::int64_t steps = 1;
  bool window = false, judged = false;
};

class ProofPlan {
 public:
  ProofPlan(std::uint64_t seed, const RepeatShape& shape);

  // The request from step `next` of `epoch` on, of which none goes beyond `end`. `longest`: steps of a window that can
  // be judged by now; `fitting`: steps of a request that is no window; `window_share`: what a window costs besides its
  // steps, in steps; infinite: there is none but those that are judged.
  NextRequest next(int epoch, std::int64_t next, std::int64_t end, std::int64_t longest, std::int64_t fitting,
                   double window_share);
  // A window that was too rough to be judged: a later one of the epoch takes its place. False: there is no room.
  bool retry(int epoch, std::int64_t next);

  const std::set<int>& scored() const { return scored_; }
  const std::deque<Window>& planned() const { return planned_; }  // judged ones that are to come

 private:
  std::int64_t draw_length(std::int64_t longest);
  RepeatShape shape_;
  stats::Random random_;
  std::set<int> scored_;
  std::deque<Window> planned_;
  std::int64_t gap_ = -1;  // steps until the next window; -1: to be drawn
};

}  // namespace strata::training
