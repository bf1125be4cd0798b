// SPDX-License-Identifier: Apache-2.0
// Questions as values: what is wanted, never how it was typed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/options.hpp"
#include "store/record.hpp"

namespace strata::engine {

struct CompareRequest {
  plan::Options options;
  std::string python;     // an interpreter with PyTorch; empty: strata's own
  std::string data_dir;   // where the files of data sets lie; empty: the usual place
  bool skip_bad = false;  // leave out files of a data set that cannot be read
};

// A comparison of every point of a grid within a budget, or a search for a batch.
struct SweepRequest : CompareRequest {
  std::optional<double>
      point_time_s;         // measured time of every point; nullopt: its share of the budget, or the preset's
  bool retry = false;       // levels at points no smaller than one at which they ran out of memory, too
  bool full_proof = false;  // of every point, not of the corners alone
  std::string find_batch;   // the rule of a search (analysis/find_batch.hpp); empty: none
  std::pair<std::int64_t, std::int64_t> batch_bounds;  // between which it searches
};

// Whole trainings of all levels that train, on the same images in the same order from the same weights. Of the options
// it has the network's, the levels' and the run's (request_members.hpp); the rest follows from its own.
struct TrainRequest : CompareRequest {
  std::string dataset;               // what it learns: a set's name, or a folder of images by class
  std::vector<std::string> augment;  // flip, crop
  std::string init = "torch";        // schemes or files, as "torch;xavier": a training each
  bool sweep_init = false;           // the usual schemes in place of `init`
  int epochs = 1, repeats = 1;
  int proofs = 3;                     // steps of each repeat that are proven, besides the last
  std::int64_t images = 0;            // at most, of each split; 0: all
  std::optional<std::int64_t> norms;  // steps between two looks at the layers; 0: none; nullopt: as training::Plan
  int batch = 64, threads = 0;        // threads: 0: physical cores
  bool partial = false;               // files may hold fewer images than published
  double margin = 0.01, loss_margin = 0.05;  // within which levels learn alike: of accuracy (a share), of loss
  std::string rule = "margin";               // or mlperf: also the epochs to the target
  std::optional<double> target;              // accuracy whose time is told, a share
  std::string scale;                         // the part that is done (plan/scale.hpp); empty: all of it
};

// The run that answers a request.
struct RunContext {
  std::vector<std::string> words;     // how it was asked for on a command line, after the program's name
  std::optional<store::Run> resumed;  // the run that goes on
  nlohmann::json suite;               // the suite run that this is a part of (docs/suites.md), or null
  bool dry_run = false;               // nothing is installed or measured
};

}  // namespace strata::engine
