// SPDX-License-Identifier: Apache-2.0
// Which levels learn as the reference does: paired by repeat, after the last epoch (stats/equivalence.hpp).
#pragma once

#include <string>
#include <vector>

#include "analysis/learning.hpp"
#include "stats/equivalence.hpp"

namespace strata::analysis {

struct Learner {
  std::string name;
  const Learning* learning = nullptr;
};

// A level against the reference in one score; differences are level minus reference.
struct Judged {
  std::string name;
  stats::PairedTest test;
  stats::EquivalenceVerdict likeness = stats::EquivalenceVerdict::inconclusive;
};

// Levels that share no ended repeat with the reference are left out; "different" is Holm's over all that are left.
// `margin`: a share of the test images. `test_images`: that a score is over; one of them is the least half width of an
// interval. 0: not known, no least width.
std::vector<Judged> judge_accuracy(const Learner& reference, const std::vector<Learner>& others, double margin,
                                   double test_images);
// The same of the test loss; `margin` in its own unit.
std::vector<Judged> judge_loss(const Learner& reference, const std::vector<Learner>& others, double margin);

}  // namespace strata::analysis
