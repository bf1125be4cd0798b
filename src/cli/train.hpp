// SPDX-License-Identifier: Apache-2.0
// A training as `train` runs it and `resume` goes on with it.
#pragma once

#include "cli/compare.hpp"
#include "plan/training_time.hpp"
#include "training/initial_weights.hpp"

namespace strata::cli {

struct TrainArguments {
  CompareArguments common;  // network, levels, environment, store
  std::string dataset, data_dir, augment, init = "torch";
  bool sweep_init = false;                  // the usual schemes in place of `init`
  std::vector<training::Initial> initials;  // what these say: a training each
  int epochs = 1, repeats = 1, proofs = 3;
  std::int64_t images = 0;            // at most, of each split; 0: all
  std::optional<std::int64_t> norms;  // steps between two looks at the layers; 0: none; nullopt: as training::Plan
  int batch = 64, threads = 0;
  bool partial = false;                      // files may hold fewer images than published
  std::string margin_text = "1pp";           // as typed
  std::string rule = "margin";               // or mlperf: also the epochs to the target
  std::string target_text;                   // as typed; empty: none
  std::optional<double> target;              // accuracy whose time is told, a share
  double margin = 0.01, loss_margin = 0.05;  // within which levels learn alike: of accuracy (a share), of loss
  std::string scale;                         // as typed; empty: all of it
  double images_share = 1;                   // that --scale leaves, of each split
  std::string scaled;                        // what it cut, in words
  std::vector<int> own_repeats;              // of a shard, from 0; empty: all
};

void add_train_options(CLI::App& verb, TrainArguments& a);
void add_scale(CLI::App& verb, std::string& scale);  // --scale

// The texts read, epochs and repeats scaled, everything else that can be wrong checked.
Result<engine::Prepared> ready_to_train(TrainArguments& a);

// How often each level is trained: `repeats` times from each initialisation.
int trainings_of(const TrainArguments& a, int repeats);

// The data set as the case names it: a part of it is another one.
std::string data_name(const TrainArguments& a, const std::string& set);

// --scale for images, once they are counted: `work` gets those that are left, `a` says so.
void scale_images(TrainArguments& a, plan::TrainingWork& work);

// Trains and shows: the exit code, or what kept it from its end.
Result<int> run_train(TrainArguments& a);

// The same, where the error is said.
int train(TrainArguments& a);

}  // namespace strata::cli
