// SPDX-License-Identifier: Apache-2.0
// What `strata compare` takes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.hpp"

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

// A run, and what becomes of its result.
struct RunArguments : engine::RunContext {
  std::string store, format = "text", output;
  ClusterArguments cluster;  // of a sweep or a training
  bool quiet = false;        // nothing of the result on standard output
};

// The request and its run, with what is typed as text and read later (read_texts).
struct CompareArguments : engine::SweepRequest, RunArguments {
  std::string batch, threads, levels, budget, point_time, ci_width, timeout;
  std::vector<std::string> environments;  // of --env
  bool whole_budget = false;              // of a sweep: --budget is that of all cases together
};

void add_compare_options(CLI::App& verb, CompareArguments& a);

// Fills `options` from the texts. Error: one is not of its form.
Result<void> read_texts(CompareArguments& a);

}  // namespace strata::cli
