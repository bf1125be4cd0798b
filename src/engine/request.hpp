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

// The run that answers a request.
struct RunContext {
  std::vector<std::string> words;     // how it was asked for on a command line, after the program's name
  std::optional<store::Run> resumed;  // the run that goes on
  nlohmann::json suite;               // the suite run that this is a part of (docs/suites.md), or null
  bool dry_run = false;               // nothing is installed or measured
};

}  // namespace strata::engine
