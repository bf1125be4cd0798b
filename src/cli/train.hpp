// SPDX-License-Identifier: Apache-2.0
// A training as `train` runs it and `resume` goes on with it.
#pragma once

#include "cli/compare.hpp"
#include "training/initial_weights.hpp"

namespace strata::cli {

struct TrainArguments {
  CompareArguments common;    // network, levels, environment, store
  training::Initial initial;  // what `init` says
  std::string dataset, data_dir, augment, init = "torch";
  int epochs = 1, repeats = 1, proofs = 3;
  std::int64_t images = 0;            // at most, of each split; 0: all
  std::optional<std::int64_t> norms;  // steps between two looks at the layers; 0: none; nullopt: an epoch
  int batch = 64, threads = 0;
};

void add_train_options(CLI::App& verb, TrainArguments& a);

// Checks, trains, shows; the exit code.
int train(TrainArguments& a);

}  // namespace strata::cli
