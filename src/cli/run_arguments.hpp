// SPDX-License-Identifier: Apache-2.0
// How a run is asked for on a command line, beside its request, and what becomes of its result.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/run_context.hpp"

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

struct RunArguments : engine::RunContext {
  std::string store, format = "text", output;
  ClusterArguments cluster;  // of a sweep or a training
  bool quiet = false;        // nothing of the result on standard output
};

// --dry-run, --store, --format, -o.
void add_run_arguments(CLI::App& verb, RunArguments& a);

// What a run keeps of them beside its request, for `resume` and for the commands that it names; and back from its
// settings.
nlohmann::json kept_of(const RunArguments& a);
void take_kept(RunArguments& a, const nlohmann::json& settings);

}  // namespace strata::cli
