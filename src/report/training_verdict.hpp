// SPDX-License-Identifier: Apache-2.0
// Does a level learn as the reference does? The verdicts of a training's repeats (analysis/learning_verdict.hpp).
#pragma once

#include <string>
#include <vector>

#include "analysis/learning_verdict.hpp"
#include "report/document.hpp"

namespace strata::report {

// Absolute, and fixed before the training.
struct Margins {
  double accuracy = 0.01;  // a share: 0.01 is one percentage point
  double loss = 0.05;
};

using analysis::Learner;

// `test_images`: that a score is over; a difference of one of them is the least that is taken for one. Nothing in it
// where there is no level beside the reference, or no repeat that both ended.
document::Section verdicts(const Learner& reference, const std::vector<Learner>& others, const Margins& margins,
                           double test_images);

// The same in a sentence, of accuracy; empty: no verdict.
std::string verdict_words(const Learner& reference, const std::vector<Learner>& others, const Margins& margins,
                          double test_images);

}  // namespace strata::report
