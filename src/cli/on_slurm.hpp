// SPDX-License-Identifier: Apache-2.0
// `--on slurm`: shards of a sweep or a training as an array of jobs (docs/cluster.md).
#pragma once

#include "cli/run_arguments.hpp"

namespace strata::cli {

// Sends every shard, or into a folder that has some of them those that are neither done nor under way. With --dry-run
// it says what it would send. Returns the exit code. Errors: no Slurm here, it refuses, the folder is another run's or
// cannot be written.
Result<int> send_to_slurm(requests::Request request, const RunArguments& a, const engine::Whole& whole);

}  // namespace strata::cli
