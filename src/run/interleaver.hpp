// SPDX-License-Identifier: Apache-2.0
// Who has its turn when: restarts, rounds in a balanced order (Williams designs, drawn from the seed), those that wait
// paused. The same order for the same seed and the same participants; docs/measuring.md says why.
#pragma once

#include <vector>

#include "run/executor.hpp"

namespace strata::run {

struct Order {
  std::uint64_t seed = 0;
  int restarts = 1;
  int first = 0;  // the restart that is begun with; those before it were done by a run that was cut off
  // How many may load at the same time. In restart 0 each starts alone, so that the times of its start are its own.
  int side_by_side = 1;
};

struct InterleaverResult {
  int restarts = 0;     // that were begun, those before the first too
  bool enough = false;  // the criterion of restarts said so
};

class Interleaver {
 public:
  // `rounds` ends a restart, `restarts` (nullptr: none) ends all before the last one.
  Interleaver(const Order& order, StoppingCriterion& rounds, StoppingCriterion* restarts, Sink& sink,
              Clock clock = steady_seconds)
      : order_(order), rounds_(rounds), restarts_(restarts), sink_(sink), clock_(std::move(clock)) {}

  // Those of a group are up at the same time and take turns; groups come one after the other, in an order drawn for
  // each restart. Ends early when nobody is active any more, or interrupted. Error: an executor's or the sink's.
  Result<InterleaverResult> run(std::vector<std::vector<Executor*>> groups);

 private:
  Result<void> restart(const std::vector<Executor*>& group, int number);
  Result<void> start(const std::vector<Executor*>& group, int number, stats::Random& random);
  void load_side_by_side(const std::vector<Executor*>& group, int number);
  Result<void> run_rounds(int number, stats::Random& random);
  Result<void> take_turn(Executor& executor, const Turn& turn);
  Result<void> finish(int number, stats::Random& random);
  void stop_inactive();

  Order order_;
  StoppingCriterion& rounds_;
  StoppingCriterion* restarts_;
  Sink& sink_;
  Clock clock_;
  std::vector<Executor*> up_;  // in the order in which they were started
};

}  // namespace strata::run
