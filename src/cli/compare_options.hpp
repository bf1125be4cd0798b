// SPDX-License-Identifier: Apache-2.0
// What `strata compare` takes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/options.hpp"
#include "store/record.hpp"

namespace strata::cli {

// What a run is split into, and who does the parts (cli/sharding.hpp, cli/on_slurm.hpp).
struct ClusterArguments {
  std::string shard;   // as typed, "2/8"; empty: not split
  bool go_on = false;  // with the shard's run that the store has
  std::string on, partition, constraint, folder;
  int nodes = 0;                    // 0: not said
  std::vector<std::string> sbatch;  // options of its own

  bool splits() const { return !shard.empty() || !on.empty(); }
};

struct CompareArguments {
  plan::Options options;
  std::string batch, threads, levels, budget, ci_width, timeout, store, format = "text", python, output, data_dir;
  std::vector<std::string> environments;  // of --env
  bool dry_run = false, skip_bad = false;
  std::string point_time;                  // of a sweep, as typed: measured time of every point
  bool retry = false, full_proof = false;  // of a sweep
  std::string find_batch;                  // its rule, likewise
  std::pair<std::int64_t, std::int64_t> batch_bounds;
  ClusterArguments cluster;           // of a sweep or a training
  std::vector<std::string> words;     // as typed, after the program's name
  std::optional<store::Run> resumed;  // the run that goes on
  nlohmann::json suite;               // the suite run that this is a part of (docs/suites.md), or null
  bool quiet = false;                 // nothing of the result on standard output
  bool whole_budget = false;          // of a sweep: --budget is that of all cases together
};

void add_compare_options(CLI::App& verb, CompareArguments& a);

// Fills `options` from the texts. Error: one is not of its form.
Result<void> read_texts(CompareArguments& a);

}  // namespace strata::cli
