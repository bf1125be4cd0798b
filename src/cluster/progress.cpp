// SPDX-License-Identifier: Apache-2.0
#include "cluster/progress.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "cluster/shard.hpp"
#include "common/escape.hpp"
#include "common/places.hpp"
#include "common/scratch_folder.hpp"
#include "common/text.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::cluster {
namespace fs = std::filesystem;
namespace {

constexpr off_t kEndOfLog = 64 << 10;  // bytes of it that are read
constexpr std::size_t kLongestWhy = 200;

// The end of a text file; empty: there is none, or what has its name is a link, a pipe or a device.
std::string tail_of(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return {};
  std::string text;
  struct stat about {};
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
    text.resize(static_cast<std::size_t>(std::min<off_t>(about.st_size, kEndOfLog)));
    const auto got = ::pread(file, text.data(), text.size(), about.st_size - static_cast<off_t>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  ::close(file);
  return text;
}

// What strata complained of last, else the last line.
std::string last_words(const std::string& log) {
  std::string last, error;
  for (const auto& line : split(log, '\n')) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    last = line;
    if (line.starts_with("error: ")) error = line.substr(7);
  }
  return escape::one_line((error.empty() ? last : error).substr(0, kLongestWhy));
}

// What the store of a shard has of it.
struct ShardCopy {
  std::string run, node;
  bool whole = false;
  std::int64_t done = 0;
};

// Repeats whose last epoch every level that learned has.
std::int64_t repeats_done(const store::Store& store, const store::Run& run) {
  const auto epochs = run.settings.training.epochs.value_or(1);
  std::set<int> done;
  for (const auto& run_case : run.cases)
    for (const auto& row : run_case.rows) {
      const auto all = store.series(row.row_id);
      if (!all) continue;
      for (const auto& series : *all)
        if (series.name == "test_accuracy" && !series.positions.empty() &&
            static_cast<double>(series.positions.back()) >= epochs)
          done.insert(series.repeat);
    }
  return static_cast<std::int64_t>(done.size());
}

// Points that were measured, and those that the network cannot have.
std::int64_t points_done(const store::Run& run) {
  std::set<std::string> without;
  for (const auto& warning : run.warnings)
    if (warning.id == point_without_result) without.insert(warning.what);
  const auto measured =
      std::count_if(run.cases.begin(), run.cases.end(), [](const auto& run_case) { return run_case.finished; });
  return static_cast<std::int64_t>(measured) + static_cast<std::int64_t>(without.size());
}

Result<ShardCopy> read_shard_copy(const fs::path& path, const SharedFolder& folder, int shard) {
  const auto store = store::Store::open_existing(path);
  if (!store) return tl::unexpected(store.error());
  const auto runs = STRATA_TRY(store->list_runs(0));
  for (const auto& run : runs) {  // the newest first
    if (run.settings.shard.whole != folder.id || run.settings.shard.shard != Shard{shard, folder.shards}.text())
      continue;
    const auto whole = STRATA_TRY(store->load_id(run.run_id));
    ShardCopy shard_copy;
    shard_copy.run = run.run_id;
    shard_copy.node = run.settings.shard.node;
    shard_copy.whole = store::state_of(run) == store::RunState::finished;
    shard_copy.done = folder.verb == "train" ? repeats_done(*store, whole) : points_done(whole);
    return shard_copy;
  }
  return ShardCopy{};
}

// A store that another machine may be writing is read from a copy of its file and log: its index of the log is memory
// that machines do not share.
Result<ShardCopy> read_copy(const SharedFolder& folder, int shard) {
  const ScratchFolder scratch("status");
  const auto from = folder.store_of(shard), to = scratch.path() / "strata.db";
  std::error_code ec;
  if (scratch.path().empty()) return fail("no folder for a copy of a store can be made", "is TMPDIR writable?");
  fs::copy_file(from, to, ec);
  if (ec) return fail(fmt::format("{}: cannot be copied: {}", from.string(), ec.message()));
  std::error_code no_log;
  fs::copy_file(from.string() + "-wal", to.string() + "-wal", no_log);
  return read_shard_copy(to, folder, shard);
}

std::int64_t parts_of(const SharedFolder& folder, int shard) {
  return folder.parts < shard ? 0 : (folder.parts - shard) / folder.shards + 1;
}

ShardProgress progress_of_shard(const SharedFolder& folder, int shard, const std::vector<Task>& tasks,
                                std::vector<std::string>& notes) {
  ShardProgress out;
  out.number = shard;
  out.parts = parts_of(folder, shard);
  for (const auto& submission : folder.submissions)
    if (std::find(submission.shards.begin(), submission.shards.end(), shard) != submission.shards.end())
      out.job = submission.job;
  out.sent = !out.job.empty();
  const auto it = std::find_if(tasks.begin(), tasks.end(),
                               [&](const Task& task) { return task.job == out.job && task.number == shard; });
  const auto* task = it == tasks.end() ? nullptr : &*it;
  if (out.sent) out.end = judge_task(task, tail_of(folder.end_of(shard)), tail_of(folder.log_of(shard)));
  if (out.end.state == TaskState::failed && !there_is(folder.log_of(shard)))
    out.end.why = fmt::format("it left no log: does its node see {}?", folder.path.string());
  if (task) out.node = task->node;
  if (!there_is(folder.store_of(shard))) return out;
  const auto shard_copy = read_copy(folder, shard);
  if (!shard_copy) {
    // while it is written, a copy may be of two moments
    if (!is_under_way(out.end.state)) notes.push_back(fmt::format("shard {}: {}", shard, shard_copy.error().what));
    return out;
  }
  out.run = shard_copy->run;
  out.done = std::min(shard_copy->done, out.parts);
  // A run in which nothing could be captured is not kept.
  const bool nothing_to_keep = shard_copy->run.empty() && out.end.state == TaskState::finished &&
                               tail_of(folder.log_of(shard)).find("the budget is spent") == std::string::npos;
  out.whole = (shard_copy->whole || nothing_to_keep) && !is_under_way(out.end.state);
  if (out.node.empty()) out.node = shard_copy->node;
  if (!out.whole) return out;
  out.done = out.parts;
  out.end.state = TaskState::finished;  // whatever became of single levels: that is told point by point
  out.end.why.clear();
  return out;
}

}  // namespace

TaskEnd judge_task(const Task* task, const std::string& exit_code, const std::string& whole_log) {
  const auto last_try = whole_log.rfind(begin_of_try);
  const auto log = last_try == std::string::npos ? whole_log : whole_log.substr(last_try);
  const auto code = number<int>(std::string_view(exit_code).substr(0, exit_code.find('\n')));
  TaskEnd end{task ? task->state : TaskState::unknown, ""};
  if (is_under_way(end.state)) {
    if (end.state == TaskState::pending && task) end.why = task->reason;
    return end;
  }
  if (end.state == TaskState::unknown && code) end.state = *code == 0 ? TaskState::finished : TaskState::failed;
  // Without accounting a task that Slurm ended is known by what Slurm wrote into its log.
  if (end.state == TaskState::unknown || end.state == TaskState::failed || end.state == TaskState::cancelled)
    if (const auto logged = state_from_log(log); logged != TaskState::unknown) end.state = logged;
  if (end.state == TaskState::unknown)
    end.why = "neither the queue nor the accounting knows it, and it left no end: its node may have gone";
  else if (end.state == TaskState::failed)
    end.why = code ? fmt::format("exit code {}: {}", *code, last_words(log)) : last_words(log);
  return end;
}

std::size_t Progress::count(TaskState state) const {
  return static_cast<std::size_t>(
      std::count_if(shards.begin(), shards.end(), [&](const auto& shard) { return shard.end.state == state; }));
}

std::vector<int> Progress::missing() const {
  std::vector<int> numbers;
  for (const auto& shard : shards)
    if (!shard.whole && !is_under_way(shard.end.state)) numbers.push_back(shard.number);
  return numbers;
}

Progress progress_of(const SharedFolder& folder) {
  Progress all;
  std::vector<std::string> jobs;
  for (const auto& submission : folder.submissions) jobs.push_back(submission.job);
  auto tasks = tasks_of(jobs);
  if (!tasks) {
    all.queue_known = false;
    all.notes.push_back(tasks.error().what);
  }
  const std::vector<Task> none;
  for (int shard = 1; shard <= folder.shards; ++shard)
    all.shards.push_back(progress_of_shard(folder, shard, tasks ? *tasks : none, all.notes));
  for (auto& shard : all.shards)
    if (shard.end.state == TaskState::finished && !shard.whole && shard.sent)
      shard.end.why =
          fmt::format("it ended before all of its {} were reached: the budget was spent", folder.parts_name());
  return all;
}

}  // namespace strata::cluster
