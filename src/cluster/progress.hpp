// SPDX-License-Identifier: Apache-2.0
// How far each shard of a shared folder is: by the queue, by its store, by what its task left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/shared_folder.hpp"
#include "cluster/slurm.hpp"

namespace strata::cluster {

// What became of a task, and of one that did not come to its end why.
struct TaskEnd {
  TaskState state = TaskState::unknown;
  std::string why;
};

// By the word of the queue or the accounting (nullptr: they have none), the exit code that the task's script wrote
// (empty: none) and its log, of which the last try counts.
TaskEnd judge_task(const Task* task, const std::string& exit_code, const std::string& whole_log);

struct ShardProgress {
  int number = 1;
  TaskEnd end;
  bool sent = false;   // it is part of a submission
  bool whole = false;  // its store has all that it was to do
  std::string job, node;
  std::string run;                   // of its store; empty: none yet
  std::int64_t done = 0, parts = 0;  // of its own
};

struct Progress {
  std::vector<ShardProgress> shards;
  std::vector<std::string> notes;  // what could not be asked or read
  bool queue_known = true;         // false: what is under way is not known

  std::vector<int> missing() const;  // neither whole nor under way
  bool whole() const { return missing().empty() && count(TaskState::finished) == shards.size(); }
  std::size_t count(TaskState state) const;
};

Progress progress_of(const SharedFolder& folder);

}  // namespace strata::cluster
