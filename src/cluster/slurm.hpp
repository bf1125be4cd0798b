// SPDX-License-Identifier: Apache-2.0
// Slurm by its own commands: sbatch, squeue, sacct, scancel. What they print is read here; nothing is scheduled.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace strata::cluster {

enum class TaskState {
  unknown,  // nobody knows of it any more
  pending,
  running,
  finished,
  failed,
  timed_out,
  preempted,
  node_failure,
  out_of_memory,
  cancelled
};
const char* to_string(TaskState state);  // "timed out"
bool is_under_way(TaskState state);      // it waits or runs

// A state as squeue and sacct write it: "RUNNING", "CANCELLED by 1000", "NODE_FAIL".
TaskState state_from_slurm(std::string_view word);
// What Slurm wrote into the log of a task that it ended ("DUE TO TIME LIMIT"); unknown: nothing.
TaskState state_from_log(std::string_view log);

// A task of an array as Slurm knows it.
struct Task {
  std::string job;  // of the whole array
  int number = 0;
  TaskState state = TaskState::unknown;
  std::string node, reason;  // empty where it has none

  bool operator==(const Task&) const = default;
};

// What the calls below print. Lines that say something else are passed over; sacct's "123_[3-5,8]" is a task each.
std::vector<Task> tasks_from_squeue(std::string_view text);
std::vector<Task> tasks_from_sacct(std::string_view text);

// "1-4,7" of ascending numbers.
std::string number_list(const std::vector<int>& numbers);

// sbatch with these words: the job's number. Errors: no sbatch here, sbatch refuses (what it says), it does not answer.
Result<std::string> submit(const std::vector<std::string>& words);

// The tasks of these jobs: as the queue has them, else as the accounting has them. What neither knows is left out.
// Error: the queue cannot be asked; the accounting is then not asked either.
Result<std::vector<Task>> tasks_of(const std::vector<std::string>& jobs);

Result<void> cancel(const std::vector<std::string>& jobs);

// Nodes of a partition (empty: of the default ones). Error: sinfo cannot be asked.
Result<int> count_nodes(const std::string& partition);

}  // namespace strata::cluster
