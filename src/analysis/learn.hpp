// SPDX-License-Identifier: Apache-2.0
// What runs in the store teach a run that begins: by how much the restarts of each two levels of a case part. It is
// kept with the run (`trust.learned` of its case), so that its report says the same however many runs come after it.
#pragma once

#include <set>
#include <vector>

#include "stats/learned.hpp"
#include "store/store.hpp"

namespace strata::analysis {

// Of the newest ten runs of this case and network on this machine that have the same environments and version of
// strata, were not disturbed by others and measured their levels together: of each two rows of these levels (by
// id). `run_id`: that begins, and is in the store. A run that cannot be read teaches nothing. Error: the store's.
Result<std::vector<store::LearnedPair>> learn(const store::Store& store, const std::string& run_id,
                                              const store::Case& run_case, const std::set<std::string>& levels);

// What a case's stored `trust` says of two rows, by name, in either order.
stats::LearnedSpread learned_of(const store::Trust& trust, const std::string& name, const std::string& other);

}  // namespace strata::analysis
