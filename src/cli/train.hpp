// SPDX-License-Identifier: Apache-2.0
// A training as `train` runs it and `resume` goes on with it.
#pragma once

#include "cli/run_verbs.hpp"
#include "plan/training_time.hpp"
#include "training/initial_weights.hpp"

namespace strata::cli {

struct TrainArguments : requests::TrainRequest, RunArguments {
  std::vector<training::Initial> initials;  // what --init says: a training each
  double images_share = 1;                  // that --scale leaves, of each split
  std::string scaled;                       // what it cut, in words
  std::vector<int> own_repeats;             // of a shard, from 0; empty: all
};

// The texts read, epochs and repeats scaled, everything else that can be wrong checked.
Result<engine::Prepared> ready_to_train(TrainArguments& a);

// How often each level is trained: `repeats` times from each initialisation.
int trainings_of(const TrainArguments& a, int repeats);

// The data set as the case names it: a part of it is another one.
std::string data_name(const TrainArguments& a, const std::string& set);

// --scale for images, once they are counted: `work` gets those that are left, `a` says so.
void scale_images(TrainArguments& a, plan::TrainingWork& work);

}  // namespace strata::cli
