// SPDX-License-Identifier: Apache-2.0
// Timed training steps made again. The state is read after turns that are drawn; between two such states the level
// itself repeats the steps from the first, as it is asked for steps that are proven, and must get to the second.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "measure/repeated_steps.hpp"
#include "proof/train_certificate.hpp"
#include "session/session.hpp"
#include "stats/schedule.hpp"

namespace strata::measure {

class Replay {
 public:
  // Steps of about `iteration_ns`: no more between two states are made again than take a third of a second.
  explicit Replay(double iteration_ns);

  // A turn: the ring index of each of its steps, their told times together, and the loss of step `checked`.
  void add_turn(const std::vector<int>& indices, double told_ns, std::size_t checked, double loss);
  // Drawn, as long as reading states takes little beside the steps; a level cannot foresee it.
  bool wants_state(stats::Random& random) const;
  Try<void> read_state(Session& session, stats::Random& random);

  // States that were read so far, and what the level told of since the last of them.
  const std::vector<proof::StateRead>& reads() const { return reads_; }
  double told_since_ns() const { return told_since_ns_; }

  // Leaves the session in another state than it was, in mode train. Of all pairs of states so few steps apart some were
  // drawn, of small networks several: where rounding carries too far over one of them, the next is judged. Adds what
  // came of it to `evidence`; `spread`: of a level that does not repeat itself.
  Try<void> judge(Session& session, const proof::TrainReference& reference, double spread,
                  proof::TrainEvidence& evidence) const;

 private:
  struct Interval {
    TrainState before, after;  // their files alone
    std::vector<int> indices;
    std::vector<StepLoss> losses;
  };

  std::size_t most_steps_;
  // Keeps it, or not, so that each of all that were seen is as likely kept as any other.
  void draw(Interval interval, stats::Random& random);
  Try<std::optional<proof::OutputVerdict>> verdict_of(Session& session, const proof::TrainReference& reference,
                                                      double spread, const Interval& drawn) const;

  std::optional<Interval> since_;  // the last state that was read
  std::vector<Interval> drawn_;
  int eligible_ = 0;
  std::vector<proof::StateRead> reads_;
  std::int64_t steps_ = 0, comparable_ = 0;                // all, and those between states that could be compared
  double told_ns_ = 0, reads_ns_ = 0, told_since_ns_ = 0;  // all together; since the last state
};

}  // namespace strata::measure
