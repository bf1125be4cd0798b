// SPDX-License-Identifier: Apache-2.0
// `--on slurm`: shards of a sweep or a training as an array of jobs (docs/cluster.md).
#pragma once

#include <string>
#include <vector>

#include "cluster/shared_folder.hpp"
#include "engine/shard.hpp"

namespace strata::engine {

// Which nodes do the shards, and where they write. `on`: empty: none is sent anywhere.
struct ClusterTarget {
  std::string on, partition, constraint, folder;
  int nodes = 0;                    // 0: those of the partition
  std::vector<std::string> sbatch;  // options of its own
};

struct SentShards {
  cluster::SharedFolder folder;
  std::vector<int> shards;  // that were sent, or would be; empty: none is missing
  std::string job;          // empty: nothing was sent
  bool all_done = false;    // else some are under way
};

// Sends every shard, or into a folder that has some of them those that are neither done nor under way. `dry_run`: says
// which they are. Errors: no Slurm here, it refuses, the folder is another run's or cannot be written.
Result<SentShards> send_shards(requests::Request request, const ClusterTarget& target, const ShardedWork& whole,
                               bool dry_run);

}  // namespace strata::engine
