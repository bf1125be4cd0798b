// SPDX-License-Identifier: Apache-2.0
// Sweeps and trainings of which several processes do a part each (docs/cluster.md): what the whole is, and which part
// is this process's own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/run_arguments.hpp"
#include "cluster/shard.hpp"
#include "common/file_lock.hpp"

namespace strata::cli {

// --shard, --resume, --on and what goes with that. `parts`: "points".
void add_cluster_options(CLI::App& verb, ClusterArguments& a, const std::string& parts);

// What is split, before anything of it is prepared.
struct Whole {
  std::string verb;
  std::size_t parts = 0;    // points of a sweep, repeats of a training
  nlohmann::json question;  // what makes it this whole and no other, on any machine

  std::string parts_name() const { return verb == "train" ? "repeats" : "points"; }
  // Two with another seed of the order are two. The repeats of a training are in one piece only where they were split
  // alike; points of a sweep fit together however they were split.
  std::string id(std::optional<std::int64_t> order_seed, int shards) const;
};

// Errors: those of a plan.
Result<Whole> whole_sweep(const requests::SweepRequest& request);
Result<Whole> whole_training(const requests::TrainRequest& request);

struct OwnShard {
  cluster::Shard shard;
  nlohmann::json settings;  // that its run keeps
  std::string done;         // the run in the store that has all of it; empty: none
  // With --resume: a process of a node that was given up may still be at it.
  std::shared_ptr<FileLock> lock;
};

// What --shard says. With --resume `a.resumed` becomes the newest run of this shard in the store that can go on.
// Errors: another form, fewer parts than shards, a run that another process measures, a training without a seed.
Result<OwnShard> own_shard(const requests::CompareRequest& request, RunArguments& a, const Whole& whole);

// Says that nothing is left to do; the exit code.
int say_shard_done(const OwnShard& own);

}  // namespace strata::cli
