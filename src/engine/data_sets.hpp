// SPDX-License-Identifier: Apache-2.0
// Data sets on this machine: which there are, what is known of one, reading and checking it, getting it, looking at it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "data/cache.hpp"
#include "data/catalogue.hpp"
#include "engine/events.hpp"
#include "requests/request.hpp"

namespace strata::engine {

struct ListedSet {
  const data::CatalogueEntry* entry = nullptr;
  std::string state;  // in words: read, here, missing, ...
};
struct ListedSets {
  std::filesystem::path data_dir;  // where they are looked for
  std::vector<ListedSet> sets;     // all that strata knows
};
Result<ListedSets> list_data_sets(const requests::DataRequest& request);

struct SetInfo {
  std::string name;
  const data::CatalogueEntry* entry = nullptr;  // nullptr: a folder of images
  Result<data::CachedDataset> opened;           // error: why there is no cache of it
};
// Error: no such set.
Result<SetInfo> info_of_data_set(const requests::DataRequest& request, EventSink& events);
nlohmann::json to_json(const SetInfo& set);

struct VerifiedSet {
  data::CachedDataset opened;
  std::size_t published_checksums = 0;  // files that have their publisher's
  double all_s = 0;
};
// Read into the cache, or every byte of the cache checked. Error: what is missing or damaged.
Result<VerifiedSet> verify_data_set(const requests::DataRequest& request, EventSink& events);
nlohmann::json to_json(const VerifiedSet& set);

enum class Fetched { now, before, part_of_strata };
struct FetchedSet {
  std::filesystem::path data_dir;
  Fetched fetched = Fetched::now;
};
// `on_terminal`: curl draws its own progress there.
Result<FetchedSet> fetch_data_set(const requests::DataRequest& request, EventSink& events, bool on_terminal = false);

// The page with some images of it, written.
Result<std::filesystem::path> write_sheet(const requests::DataRequest& request, EventSink& events);

// Whichever it asks for.
Result<nlohmann::json> answer_of_data(const requests::DataRequest& request, EventSink& events);

}  // namespace strata::engine
