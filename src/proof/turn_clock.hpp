// SPDX-License-Identifier: Apache-2.0
// Whether the times that a level tells of its turns of a training can be, by the driver's clock: turns are of many
// lengths, and what a request takes besides its steps does not grow with their number. Knows no process.
#pragma once

#include <vector>

#include "proof/clock.hpp"

namespace strata::proof {

class TurnClock {
 public:
  // A request of `turn.iterations` steps, as both saw it; `reported_ns`: with what it waited for its batches.
  void add(const Timed& turn);
  // Several turns of few steps and several of twice as many or more.
  bool enough() const;
  // The short turn and the long one by which the level is judged. Of short ones that with the least untold time; of
  // long ones, sorted by what they leave untold beyond it, the one after the first quarter: what disturbs some turns
  // accuses nobody, and a clock that is right in some of them clears nobody.
  ClockEvidence evidence() const;
  // Empty: nothing speaks against the level's clock, or not enough(). With both times otherwise. What more turns may
  // clear: two turns alone say it.
  std::string suspicion() const { return evidence().complaint(); }
  // The same where all turns say it: by ranks, what the long ones leave untold lies above that of the short ones.
  std::string complaint() const;

 private:
  std::vector<Timed> turns_;
};

}  // namespace strata::proof
