// SPDX-License-Identifier: Apache-2.0
// What a training is likely to take, before it begins: from the time of a step alone.
#pragma once

#include <cstdint>

namespace strata::plan {

struct TrainingWork {
  std::int64_t train = 0, test = 0, batch = 1;  // images of each split
  int epochs = 1, repeats = 1, proofs = 0;      // steps of a repeat that are proven

  std::int64_t steps() const { return batch > 0 ? train / batch : 0; }  // of an epoch
};

// Seconds of one level, all its repeats: starts, proofs, steps, and the scores after each epoch.
double seconds_of_level(const TrainingWork& work, double step_s);

// Seconds that come once, whatever the levels: capturing the network.
constexpr double kOnceS = 60;

// A step's operations by those of a forward pass of one image: gradients of weights and of inputs take as much again
// each.
double step_flops(double forward_flops_of_image, std::int64_t batch);

// Of what a machine can do at most, what steps of networks of convolutions reach, about, and what a step takes besides:
// for a first estimate of what was never measured.
constexpr double kShareOfPeak = 0.25, kBesidesS = 1e-3;

}  // namespace strata::plan
