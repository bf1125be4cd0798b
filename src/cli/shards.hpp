// SPDX-License-Identifier: Apache-2.0
// `--shard`, `--on slurm`: a sweep or a training of which several processes do a part each (docs/cluster.md).
#pragma once

#include <optional>

#include "cli/run_arguments.hpp"

namespace strata::cli {

// Sends the shards where --on says so, or finds the one that is this process's own. The exit code where nothing is left
// to do here, which is said. Errors: engine::send_shards' and engine::own_shard's.
Result<std::optional<int>> split_run(const requests::Request& request, RunArguments& a,
                                     std::optional<engine::OwnShard>& own);

}  // namespace strata::cli
