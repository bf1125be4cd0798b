// SPDX-License-Identifier: Apache-2.0
// `--on slurm`: shards of a sweep or a training as an array of jobs (docs/cluster.md).
#pragma once

#include "cli/run_arguments.hpp"

namespace strata::cli {

// engine::send_shards, and says what became of it; the exit code. The same errors.
Result<int> send_to_slurm(const requests::Request& request, const RunArguments& a, const engine::Whole& whole);

}  // namespace strata::cli
