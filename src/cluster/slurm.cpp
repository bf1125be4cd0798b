// SPDX-License-Identifier: Apache-2.0
#include "cluster/slurm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "common/scratch_folder.hpp"
#include "common/text.hpp"
#include "worker/worker.hpp"

namespace strata::cluster {
namespace {

constexpr auto kLongestAnswer = std::chrono::seconds(120);  // of a controller that has much to do
constexpr int kNotFound = 127;                              // env(1): there is no such program
constexpr int kMostTasks = 100'000;

struct NamedState {
  const char* name;
  TaskState state;
};
// Names from squeue(1) and sacct(1), "JOB STATE CODES".
constexpr std::array kStates{
    NamedState{"PENDING", TaskState::pending},        NamedState{"CONFIGURING", TaskState::pending},
    NamedState{"REQUEUED", TaskState::pending},       NamedState{"REQUEUE_FED", TaskState::pending},
    NamedState{"REQUEUE_HOLD", TaskState::pending},   NamedState{"RESV_DEL_HOLD", TaskState::pending},
    NamedState{"SPECIAL_EXIT", TaskState::pending},   NamedState{"RUNNING", TaskState::running},
    NamedState{"COMPLETING", TaskState::running},     NamedState{"RESIZING", TaskState::running},
    NamedState{"SIGNALING", TaskState::running},      NamedState{"STAGE_OUT", TaskState::running},
    NamedState{"STOPPED", TaskState::running},        NamedState{"SUSPENDED", TaskState::running},
    NamedState{"COMPLETED", TaskState::finished},     NamedState{"FAILED", TaskState::failed},
    NamedState{"TIMEOUT", TaskState::timed_out},      NamedState{"DEADLINE", TaskState::timed_out},
    NamedState{"PREEMPTED", TaskState::preempted},    NamedState{"NODE_FAIL", TaskState::node_failure},
    NamedState{"BOOT_FAIL", TaskState::node_failure}, NamedState{"OUT_OF_MEMORY", TaskState::out_of_memory},
    NamedState{"CANCELLED", TaskState::cancelled},    NamedState{"REVOKED", TaskState::cancelled}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string field(const std::vector<std::string>& fields, std::size_t place) {
  return place < fields.size() ? std::string(trimmed(fields[place])) : std::string();
}

// "7", "[3-5,8]" and "[3-5%2]" (at most two at a time): its numbers.
std::vector<int> numbers_in(std::string_view text) {
  std::vector<int> all;
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  text = text.substr(0, text.find('%'));
  for (const auto& part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = number<int>(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos ? first : number<int>(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last - *first > kMostTasks) return {};
    for (int index = *first; index <= *last; ++index) all.push_back(index);
  }
  return all;
}

// What a program of Slurm printed. `begins`: words before it.
Result<worker::Finished> call(const std::vector<std::string>& words, const std::vector<std::string>& begins = {}) {
  const ScratchFolder scratch("slurm");
  worker::Launch launch;
  launch.argv = begins;
  launch.starts_others = true;
  launch.argv.insert(launch.argv.end(), words.begin(), words.end());
  if (!scratch.path().empty()) launch.log_path = (scratch.path() / "log").string();
  auto ran = worker::run_to_end(launch, kLongestAnswer);
  const bool missing = (!ran && ran.error().state == State::unavailable) ||
                       (ran && !begins.empty() && ran->exit_code == kNotFound && !ran->signal);
  if (missing)
    return fail(fmt::format("the program {} is not on PATH: this machine has no Slurm", words.front()),
                "run this where the cluster takes jobs; by hand, --shard 1/N does the first part of N",
                Exit::environment);
  if (!ran) return fail(fmt::format("{}: {}", words.front(), ran.error().what), ran.error().hint);
  if (ran->timed_out)
    return fail(fmt::format("{} did not answer within {} s", words.front(), kLongestAnswer.count()),
                "is the controller up? `scontrol ping` shows it");
  return *ran;
}

// What it said on standard error, else on standard output.
std::string words_of_failure(const worker::Finished& ran) {
  const auto text = trimmed(ran.log_tail.empty() ? ran.stdout_text : ran.log_tail);
  return text.empty() ? fmt::format("exit code {}", ran.exit_code) : std::string(text);
}

bool well(const worker::Finished& ran) {
  return ran.exit_code == 0 && !ran.signal;
}

}  // namespace

const char* to_string(TaskState state) {
  static constexpr std::array names{"unknown",   "pending",   "running",      "finished",      "failed",
                                    "timed out", "preempted", "node failure", "out of memory", "cancelled"};
  return names.at(static_cast<std::size_t>(state));  // in the order of the states
}

bool is_under_way(TaskState state) {
  return state == TaskState::pending || state == TaskState::running;
}

TaskState state_from_slurm(std::string_view word) {
  word = trimmed(word);
  word = word.substr(0, word.find_first_of(" +"));  // "CANCELLED by 1000", "CANCELLED+"
  const auto it = std::find_if(kStates.begin(), kStates.end(),
                               [&](const NamedState& named_state) { return named_state.name == word; });
  return it == kStates.end() ? TaskState::unknown : it->state;
}

TaskState state_from_log(std::string_view log) {
  // The last word counts: why it was cancelled stands behind that it was.
  static constexpr std::array kNamedInLogs{NamedState{"CANCELLED AT", TaskState::cancelled},
                                           NamedState{"DUE TO TIME LIMIT", TaskState::timed_out},
                                           NamedState{"DUE TO PREEMPTION", TaskState::preempted},
                                           NamedState{"DUE TO NODE FAILURE", TaskState::node_failure},
                                           NamedState{"oom_kill event", TaskState::out_of_memory},
                                           NamedState{"oom-kill event", TaskState::out_of_memory}};
  TaskState state = TaskState::unknown;
  std::size_t last = 0;
  for (const auto& [words, named] : kNamedInLogs)
    if (const auto at = log.rfind(words); at != std::string_view::npos && at >= last) {
      last = at;
      state = named;
    }
  return state;
}

std::vector<Task> tasks_from_squeue(std::string_view text) {
  std::vector<Task> tasks;
  for (const auto& line : split(text, '\n')) {
    const auto fields = split(line, '|');
    const auto task = number<int>(field(fields, 1));
    if (fields.size() < 3 || !task) continue;
    auto reason = field(fields, 4);
    if (reason == "None") reason.clear();
    tasks.push_back({.job = field(fields, 0),
                     .number = *task,
                     .state = state_from_slurm(fields[2]),
                     .node = field(fields, 3),
                     .reason = std::move(reason)});
  }
  return tasks;
}

std::vector<Task> tasks_from_sacct(std::string_view text) {
  std::vector<Task> tasks;
  for (const auto& line : split(text, '\n')) {
    const auto fields = split(line, '|');
    const auto id = field(fields, 0);
    const auto between = id.find('_');
    if (fields.size() < 2 || between == std::string::npos || id.find('.') != std::string::npos) continue;
    auto node = field(fields, 2);
    if (node == "None assigned") node.clear();
    for (const int number : numbers_in(std::string_view(id).substr(between + 1)))
      tasks.push_back({.job = id.substr(0, between),
                       .number = number,
                       .state = state_from_slurm(fields[1]),
                       .node = node,
                       .reason = ""});
  }
  return tasks;
}

std::string number_list(const std::vector<int>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    parts.push_back(end - i == 1 ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end - 1]));
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

Result<std::string> submit(const std::vector<std::string>& words) {
  std::vector<std::string> all{"sbatch", "--parsable"};
  all.insert(all.end(), words.begin(), words.end());
  // A task inherits what sbatch has, and what marks the children of this process would end it with this process.
  const auto ran = STRATA_TRY(call(all, {"env", "-u", "STRATA_WORKER"}));
  if (!well(ran))
    return fail(fmt::format("sbatch refuses the job: {}", words_of_failure(ran)),
                "`sinfo` shows partitions and nodes; --partition, --constraint and --sbatch go to sbatch as they are",
                Exit::environment);
  auto job = std::string(trimmed(ran.stdout_text.substr(0, ran.stdout_text.find_first_of(";\n"))));  // "123;cluster"
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    return fail(fmt::format("sbatch --parsable prints no job's number: {}", words_of_failure(ran)),
                "`squeue --me` shows whether it was taken");
  return job;
}

Result<std::vector<Task>> tasks_of(const std::vector<std::string>& jobs) {
  if (jobs.empty()) return std::vector<Task>{};
  const auto list = fmt::format("{}", fmt::join(jobs, ","));
  const auto queue =
      call({"squeue", "--noheader", "--array", "--states=all", "--jobs=" + list, "--format=%F|%K|%T|%N|%r"});
  if (!queue) return tl::unexpected(queue.error());
  // A job that ended some minutes ago is no valid one any more.
  if (!well(*queue) && queue->log_tail.find("Invalid job id") == std::string::npos)
    return fail(fmt::format("squeue: {}", words_of_failure(*queue)), "is the controller up? `scontrol ping` shows it");
  auto tasks = tasks_from_squeue(queue->stdout_text);
  std::set<std::pair<std::string, int>> known;
  for (const auto& task : tasks) known.emplace(task.job, task.number);
  // Not every cluster has accounting.
  const auto accounted =
      call({"sacct", "--noheader", "--parsable2", "--allocations", "--jobs=" + list, "--format=JobID,State,NodeList"});
  if (accounted && well(*accounted))
    for (auto& task : tasks_from_sacct(accounted->stdout_text))
      if (!known.contains({task.job, task.number})) tasks.push_back(std::move(task));
  return tasks;
}

Result<void> cancel(const std::vector<std::string>& jobs) {
  std::vector<std::string> words{"scancel"};
  words.insert(words.end(), jobs.begin(), jobs.end());
  const auto ran = STRATA_TRY(call(words));
  if (!well(ran)) return fail(fmt::format("scancel: {}", words_of_failure(ran)));
  return {};
}

Result<int> count_nodes(const std::string& partition) {
  std::vector<std::string> words{"sinfo", "--noheader", "--format=%D"};
  if (!partition.empty()) words.push_back("--partition=" + partition);
  const auto ran = STRATA_TRY(call(words));
  int nodes = 0;
  if (well(ran))
    for (const auto& line : split(ran.stdout_text, '\n')) nodes += std::max(0, number<int>(trimmed(line)).value_or(0));
  if (nodes > 0) return nodes;
  return fail(fmt::format("sinfo reports no number of nodes: {}", words_of_failure(ran)), "give it: --nodes N",
              Exit::environment);
}

}  // namespace strata::cluster
