// SPDX-License-Identifier: Apache-2.0
// The runs of a whole's shards as one run, for its report: every point of a sweep once, every repeat of a training at
// its level. Nothing is stored.
#pragma once

#include "common/result.hpp"
#include "store/store.hpp"

namespace strata::cluster {

bool is_shard(const store::Run& run);

// The run of a shard with those of the others of its whole that the store has. Error: the store's.
Result<store::Run> with_other_shards(store::Run run, const store::Store& store);

// All of one whole, in any order. `joined` of the result says which run did which shard, where each point was
// measured, and what was measured twice: of that the newer whole one is taken.
store::Run join_shards(std::vector<store::Run> runs);

}  // namespace strata::cluster
