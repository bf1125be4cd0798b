// SPDX-License-Identifier: Apache-2.0
// Sweeps and trainings of which several processes do a part each (docs/cluster.md): what the whole is, and which part
// is this process's own.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/shard.hpp"
#include "common/file_lock.hpp"
#include "engine/events.hpp"
#include "engine/run_context.hpp"

namespace strata::engine {

struct ShardChoice {
  std::string shard;   // "2/8"; empty: not split
  bool go_on = false;  // with the shard's run that the store has
};

// What is split, before anything of it is prepared.
struct ShardedWork {
  std::string verb;
  std::size_t parts = 0;    // points of a sweep, repeats of a training
  nlohmann::json question;  // what makes it this whole and no other, on any machine

  std::string parts_name() const { return verb == "train" ? "repeats" : "points"; }
  // Two with another seed of the order are two. The repeats of a training are in one piece only where they were split
  // alike; points of a sweep fit together however they were split.
  std::string id(std::optional<std::int64_t> order_seed, int shards) const;
};

// Errors: those of a plan; what is neither a sweep nor a training, or cannot be split.
Result<ShardedWork> sharded_work(const requests::Request& request);

struct OwnShard {
  cluster::Shard shard;
  std::size_t parts = 0;    // of the whole
  store::ShardFacts facts;  // that its run keeps
  std::string done;         // the run in the store that has all of it; empty: none
  // With --resume: a process of a node that was given up may still be at it.
  std::shared_ptr<FileLock> lock;

  std::vector<int> numbers() const;  // of its parts, from 0 on
};

// What --shard says. With `go_on` the newest run of this shard in `store` that can go on becomes the one that is
// resumed. Errors: another form, fewer parts than shards, a run that another process measures, a training without a
// seed.
Result<OwnShard> own_shard(const ShardChoice& chosen, const CompareRequest& request, const ShardedWork& whole,
                           const std::filesystem::path& store, RunContext& context, EventSink& events);

}  // namespace strata::engine
