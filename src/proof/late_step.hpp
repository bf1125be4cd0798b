// SPDX-License-Identifier: Apache-2.0
// A few steps in the middle of a training: a level's against eager's, both from the level's own state, on the same
// batches. No trajectory is compared, only where so few steps lead that rounding does not show.
#pragma once

#include <vector>

#include "proof/train_checks.hpp"

namespace strata::proof {

// What steps are: the state before them (as `state` writes it), after them, and the loss of each.
struct LateStep {
  const SafeTensors* before;
  const SafeTensors* after;
  std::vector<double> losses;
};

// How far rounding carries over these steps: || dm - de || / || de || over all weights. `moved`: as below.
double moved_share(const LateStep& eager, const LateStep& moved);
constexpr double rough_share = 1e-2;  // above it several steps are not judged

// `eager`: from the level's state. `moved`: eager again, with every weight before it moved by a unit in the last place,
// which shows how far rounding carries here. Of every weight, momentum buffer, statistic and count the change over the
// steps is compared:
//   || dl - de || <= c max(|| dm - de ||, E0 (|| de || + 0.01 R sqrt(n))) + 4 spread || de || + 8 u || w ||, u = 2^-24,
// with c = 16 for one step and 64 for several, E0 the envelope of its gradient or statistic on the timed weights and R
// the root mean square of all changes of its kind; each loss likewise, with 1e-6 of it for rounding. Adam divides by
// the root of its mean of squares, which blows up the rounding of gradients that are nearly zero: of it the two buffers
// are compared with eager's so (that of squares within 4 times as much), and parameters must have moved by these as the
// step after `done` others moves them, so that of Adam there is one step alone.
// `along`: moved steps of another draw. Then dl is compared with those, within what the same rounding allows: a value
// that rounding takes over a kink changes a whole channel's gradient, by a thousand times the rest, and what went over
// it there goes with steps that did so too, with no others.
OutputVerdict check_late_step(const TrainReference& reference, const LateStep& level, const LateStep& eager,
                              const LateStep& moved, double spread, std::int64_t done, const LateStep* along = nullptr);

// What scoring a split gave, of the same weights.
struct SplitScore {
  std::int64_t samples = 0, correct = 0;
  double loss = 0;  // mean
};
// Means of losses to one thousandth, and answers but for 0.2% of the images (those whose two best classes lie within
// rounding), two at least.
OutputVerdict check_score(const SplitScore& level, const SplitScore& eager);

}  // namespace strata::proof
