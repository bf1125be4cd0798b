// SPDX-License-Identifier: Apache-2.0
// Whole runs, in one store and between stores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::engine {

using RunCallback = std::function<void(const std::string&)>;  // a run's id, as it goes

struct FreedBytes {
  std::uintmax_t store = 0, beside = 0;  // bytes of the store, of logs and reports
};
// Runs by id, a beginning of it, name or last, with their files. `deleted`: of each. Errors: no such run, one that is
// being measured, the store's; those before it are gone.
Result<FreedBytes> delete_runs(const std::filesystem::path& store, const std::vector<std::string>& runs,
                               const RunCallback& deleted);

// One run as a store of its own. Errors: no such run, the file is there or cannot be written.
Result<void> export_run(const std::filesystem::path& store, const std::string& run, const std::filesystem::path& file);

// Of runs that have none, or of these. `running`: of each that is being measured, which is passed over. How many were
// computed. Errors: no such run, interrupted, the store's.
Result<std::size_t> refresh_metrics(const std::filesystem::path& store, const std::vector<std::string>& runs,
                                    const RunCallback& running);

struct JoinCounts {
  std::size_t copied = 0, known = 0;  // runs; that were there already
};
// Every run of these stores comes to `into`, which is made where it is missing. `all`: what was done, before an error
// too. Errors: `into` is one of them, one cannot be read or written, two are different and have one id, interrupted.
Result<void> join_stores(const std::vector<std::string>& files, const std::filesystem::path& into, JoinCounts& all);

}  // namespace strata::engine
