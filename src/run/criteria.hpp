// SPDX-License-Identifier: Apache-2.0
// When turns are enough: after a time, or once what they are to tell is precise.
#pragma once

#include <vector>

#include "run/executor.hpp"
#include "stats/compare.hpp"

namespace strata::run {

// After `seconds` and at least `fewest` rounds. The time of turns that failed does not count.
class StopByTime : public StoppingCriterion {
 public:
  StopByTime(double seconds, int fewest, Clock clock = steady_seconds)
      : seconds_(seconds), fewest_(fewest), clock_(std::move(clock)) {}
  void begin() override;
  void add(const FinishedTurn& turn) override;
  bool finished() override;
  double left() const;  // seconds; 0: none

 private:
  double spent() const { return clock_() - began_ - lost_; }
  double seconds_;
  int fewest_;
  Clock clock_;
  double began_ = 0, lost_ = 0;
  int rounds_ = 0;
};

// Once every ratio's 99% interval is as narrow as `width` (relative, 0.01), and the restarts show their scatter.
class StopByPrecision : public StoppingCriterion {
 public:
  // `comparisons`: of each participant with the reference, from all that was measured so far. `restarts`: done before.
  StopByPrecision(double width, int restarts, std::function<std::vector<stats::Comparison>()> comparisons)
      : width_(width), restarts_(restarts), comparisons_(std::move(comparisons)) {}
  void begin() override {}
  void add(const FinishedTurn& turn) override { restarts_ = turn.restart + 1; }
  bool finished() override;

 private:
  double width_;
  int restarts_;
  std::function<std::vector<stats::Comparison>()> comparisons_;
};

}  // namespace strata::run
