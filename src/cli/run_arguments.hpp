// SPDX-License-Identifier: Apache-2.0
// How a run is asked for on a command line, beside its request, and what becomes of its result.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/send_shards.hpp"
#include "report/operations.hpp"

namespace strata::cli {

// What a run is split into, and who does the parts.
struct ClusterArguments : engine::ShardChoice, engine::ClusterTarget {
  bool splits() const { return !shard.empty() || !on.empty(); }
};

struct RunArguments : engine::RunContext {
  std::string store, format = "text", output;
  ClusterArguments cluster;                          // of a sweep or a training
  bool quiet = false;                                // nothing of the result on standard output
  std::optional<report::OperationsView> operations;  // of profiles: shown in place of the result
};

// --dry-run, --store, --format, -o.
void add_run_arguments(CLI::App& verb, RunArguments& a);

// --shard, --resume, --on and what goes with that. `parts`: "points".
void add_cluster_options(CLI::App& verb, ClusterArguments& a, const std::string& parts);

// What a run keeps of them beside its request, for `resume` and for the commands that it names; and back from its
// settings.
store::Kept kept_of(const RunArguments& a);
void take_kept(RunArguments& a, const store::Settings& settings);

}  // namespace strata::cli
