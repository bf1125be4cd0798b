// SPDX-License-Identifier: Apache-2.0
// What networks were captured as, what levels made of them and what data sets were read into; and removing it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::engine {

struct ListedEntry {
  // "capture" and its case; "network" and its model; "artefact" and its level; "data" or "images" and the set;
  // "programs" of levels and their driver; "packs", what one made ready here, and its id
  std::string kind, name;
  std::string folder, last_used;  // its name; "2026-11-27 09:30", UTC
  std::uint64_t bytes = 0;        // its own; what networks share is theirs
};
struct ListedCache {
  std::filesystem::path cache;
  std::vector<ListedEntry> entries;  // the last used first
  std::uint64_t bytes = 0;           // of all, each file once
};
// Error: there is no cache's place, or it is not the user's own.
Result<ListedCache> list_cache();

struct RemovedEntries {
  std::filesystem::path cache;
  std::size_t folders = 0;
  std::uint64_t freed = 0, left = 0;  // bytes
  std::string failure;                // of the last that could not be removed; empty: none
};
// Those that were not used for so many days; 0: all. Errors: as of list_cache, or a run or another command needs them.
Result<RemovedEntries> prune_cache(double days);
// Those that were not used for longest, until the rest is no larger. Errors: likewise.
Result<RemovedEntries> limit_cache(std::uint64_t most);

}  // namespace strata::engine
