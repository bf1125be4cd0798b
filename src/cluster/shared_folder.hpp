// SPDX-License-Identifier: Apache-2.0
// The folder that the tasks of an array share: what was asked, and for each shard a store, a log and how it ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::cluster {

// How a try of a task begins in its log.
constexpr const char* begin_of_try = "=== shard ";

// An array that was sent.
struct Submission {
  std::string job, sent;  // Slurm's number; UTC
  std::vector<int> shards;
};

// `split.json` of the folder.
struct SharedFolder {
  std::filesystem::path path;  // absolute
  std::string verb, id;        // "sweep"; of the whole (id_of_whole)
  int shards = 1;
  std::int64_t parts = 0;  // points of a sweep, repeats of a training
  std::int64_t order_seed = 0;
  std::string command;  // that sends it, and sends again what is missing
  std::vector<Submission> submissions;

  std::filesystem::path store_of(int shard) const;
  std::filesystem::path log_of(int shard) const;
  std::filesystem::path end_of(int shard) const;  // its exit code, written by the task's script
  std::filesystem::path script() const;
  std::string parts_name() const;  // "points"
};

// Whether there is one; and what it holds. Error (usage): it is none, or it cannot be read.
bool is_shared_folder(const std::filesystem::path& path);
Result<SharedFolder> read_shared_folder(const std::filesystem::path& path);
Result<void> write_shared_folder(const SharedFolder& folder);

// Where folders lie that nobody named; the newest of those.
std::filesystem::path default_folders();
Result<std::filesystem::path> newest_folder();

}  // namespace strata::cluster
