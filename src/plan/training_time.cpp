// SPDX-License-Identifier: Apache-2.0
#include "plan/training_time.hpp"

#include <algorithm>

namespace strata::plan {
namespace {

// As docs/results/2026-11-25-digits-training.md came to its time, on two cores.
constexpr double kStartS = 3;           // of a process
constexpr double kPrepareS = 15;        // of a level: what it compiles, and the processes that prove it
constexpr int kProofSteps = 12;         // before the first epoch, with those of the processes that memory is read from
constexpr int kStepsOfAProof = 12;      // in the middle: eager's, of a window of six, twice
constexpr double kForwardShare = 0.33;  // of a step: what a score takes

}  // namespace

double seconds_of_level(const TrainingWork& work, double step_s) {
  const auto steps = static_cast<double>(work.steps());
  const auto scored = static_cast<double>(work.test + std::min(work.test, work.train));
  const double epoch = steps + kForwardShare * scored / static_cast<double>(std::max<std::int64_t>(1, work.batch));
  const double repeat = work.epochs * epoch + kStepsOfAProof * (work.proofs + 1);
  return kPrepareS + kProofSteps * step_s + work.repeats * (kStartS + repeat * step_s);
}

double step_flops(double forward_flops_of_image, std::int64_t batch) {
  return 3 * forward_flops_of_image * static_cast<double>(batch);
}

}  // namespace strata::plan
