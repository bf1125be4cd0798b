// SPDX-License-Identifier: Apache-2.0
// Questions as values: what is wanted, never how it was typed. Their members are declared in members.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plan/options.hpp"

namespace strata::requests {

struct CompareRequest {
  plan::Options options;
  std::string python;  // an interpreter with PyTorch; empty: strata's own
};

// A comparison of every point of a grid within a budget, or a search for a batch.
struct SweepRequest : CompareRequest {
  std::optional<double>
      point_time_s;         // measured time of every point; nullopt: its share of the budget, or the preset's
  bool retry = false;       // levels at points no smaller than one at which they ran out of memory, too
  bool full_proof = false;  // of every point, not of the corners alone
  std::string find_batch;   // the rule of a search (analysis/find_batch.hpp); empty: none
};

// Whole trainings of all levels that train, on the same images in the same order from the same weights. Of the options
// it has the network's, the levels' and the run's; mode, batch and threads follow from its own.
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

// The artefact of a level, with a program that serves it.
struct ExportRequest : CompareRequest {
  std::string level, output;
  bool force = false;  // replace a folder that an earlier export made
};

// The network as a program.
struct GenerateRequest : CompareRequest {
  std::string output, target = "onednn";
  std::string memory_budget;  // "200MB" or "70%"; empty: none
  std::optional<double> clip_norm;
  bool tune = false, train = false;
};

// What a suite's file says, each entry a request of its own.
struct SuiteRequest {
  std::string suite;            // a file, or the name of one in suites/
  std::string model;            // only entries whose model has this in its name; empty: all
  std::string scale, data_dir;  // of its trainings
  std::string python, name;
};

// strata with what a run needs, for a machine without a network.
struct PackRequest {
  struct Target {
    std::string torch, python;  // as "2.11.0+cu130" and "3.12"; empty: any
  };
  std::string output;  // a folder, or a file .tar or .tar.gz
  std::string python, device = "cpu";
  std::vector<std::string> levels;  // empty: all that run on the device and bring no environment
  Target target;                    // what the interpreter has to be of
};

// Questions about what is there: to the store about what was measured, ...
struct ShowRequest {
  std::string run = "last";  // its id, a beginning of it, its name, or last
};
struct RunsRequest {
  int limit = 20;                  // 0: all
  std::string name, model, since;  // parts of the name, of a case's model; a day: "2026-11-27"; empty: any
};
struct DiffRequest {
  std::string before, after;  // runs, as ShowRequest names one
  double fail_above = 0.05;   // slower by more is a regression
};

// Data sets on this machine. `action`: list, info, verify, fetch or show; it says which of the others mean anything.
struct DataRequest {
  std::string action = "list";
  std::string name, data_dir;                            // a set, or a folder of images by class; where sets lie
  std::string from;                                      // another place to fetch from; empty: the publisher's
  std::int64_t size = 224;                               // of a side, where images differ in size
  std::string decode = "full", split = "train", output;  // or scaled; or test; the page (empty: the set's name)
  int threads = 0;                                       // that read; 0: one for each processor
  std::int64_t count = 64;                               // images on the page
  bool partial = false, skip_bad = false, again = false;
};

// Programs side by side, and no network: nothing is proven of what they do. The first is the reference.
struct CommandsRequest {
  std::vector<std::string> commands, names;  // names: empty: the commands
  std::string setup;                         // a command before each run, untimed
  int warmup = 1, runs = 0;                  // untimed runs first; timed ones of each, 0: as many as the budget allows
  bool served = false;                       // each is a server of its own code (docs/engine.md)
  double budget_s = 20, timeout_s = 600;
};

using Query = std::variant<ShowRequest, RunsRequest, DiffRequest, DataRequest, CommandsRequest>;
using Request = std::variant<CompareRequest, SweepRequest, TrainRequest, ExportRequest, GenerateRequest>;

}  // namespace strata::requests
