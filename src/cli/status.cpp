// SPDX-License-Identifier: Apache-2.0
// `strata status [FOLDER]`: how far a sweep or a training on a cluster is, and what is next.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "cluster/progress.hpp"
#include "common/escape.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using cluster::Progress;
using cluster::ShardProgress;
using cluster::SharedFolder;
using cluster::TaskState;
namespace {

struct StatusArguments {
  std::string folder, store, format = "text";
  bool merge = false, cancel = false;
};

std::string state_in_words(const ShardProgress& shard, bool queue_known) {
  if (shard.end.state == TaskState::unknown) return !shard.sent ? "not sent" : queue_known ? "lost" : "unknown";
  if (shard.end.state == TaskState::finished && !shard.whole) return "ended early";
  return cluster::to_string(shard.end.state);
}

std::int64_t done_in(const Progress& progress) {
  std::int64_t done = 0;
  for (const auto& shard : progress.shards) done += shard.done;
  return done;
}

nlohmann::json json_of(const SharedFolder& folder, const Progress& progress) {
  auto shards = nlohmann::json::array();
  for (const auto& shard : progress.shards)
    shards.push_back({{"shard", shard.number},
                      {"state", state_in_words(shard, progress.queue_known)},
                      {"done", shard.done},
                      {"of", shard.parts},
                      {"whole", shard.whole},
                      {"job", shard.job},
                      {"node", shard.node},
                      {"run", shard.run},
                      {"why", shard.end.why},
                      {"store", folder.store_of(shard.number).string()},
                      {"log", folder.log_of(shard.number).string()}});
  return {{"folder", folder.path.string()},   {"command", folder.command}, {"parts", folder.parts},
          {"parts_are", folder.parts_name()}, {"done", done_in(progress)}, {"whole", progress.whole()},
          {"missing", progress.missing()},    {"notes", progress.notes},   {"shards", shards}};
}

void print_table(const SharedFolder& folder, const Progress& progress, report::Format format) {
  std::vector<report::Cells> rows;
  for (const auto& shard : progress.shards)
    rows.push_back({std::to_string(shard.number), state_in_words(shard, progress.queue_known),
                    fmt::format("{} of {}", shard.done, shard.parts), shard.job, shard.node, shard.run, shard.end.why});
  answer(report::table({report::numbers("shard"), "state", report::numbers(folder.parts_name()), report::numbers("job"),
                        "node", "run", "why"},
                       rows, format));
}

std::string merge_words(const SharedFolder& folder) {
  return fmt::format("./strata status {} --merge", escape::shell_word(folder.path.string()));
}

// What is to be done next.
void print_next(const SharedFolder& folder, const Progress& progress) {
  std::vector<std::string> counts;
  for (const auto state :
       {TaskState::running, TaskState::pending, TaskState::failed, TaskState::timed_out, TaskState::preempted,
        TaskState::node_failure, TaskState::out_of_memory, TaskState::cancelled})
    if (const auto count = progress.count(state); count > 0)
      counts.push_back(fmt::format("{} {}", count, cluster::to_string(state)));
  std::size_t whole = 0;
  for (const auto& shard : progress.shards) whole += shard.whole;
  answer(fmt::format("\n{} of {} shards done{}{}; {} of {} {}\n", whole, folder.shards, counts.empty() ? "" : ", ",
                     fmt::join(counts, ", "), done_in(progress), folder.parts, folder.parts_name()));
  for (const auto& note : progress.notes) answer(note + "\n");
  const auto missing = progress.missing();
  if (progress.whole())
    answer(fmt::format("{} joins their stores: then one report has all\n", merge_words(folder)));
  else if (!missing.empty() && progress.queue_known)
    answer(fmt::format("{} sent again by the same command: {}\nthe log of shard {}: {}\n",
                       missing.size() == 1 ? fmt::format("shard {} is", missing.front())
                                           : fmt::format("shards {} are", cluster::number_list(missing)),
                       folder.command, missing.front(), folder.log_of(missing.front()).string()));
}

Result<int> merge(const StatusArguments& a, const SharedFolder& folder, const Progress& progress) {
  if (!progress.whole()) {
    std::vector<int> open;
    for (const auto& shard : progress.shards)
      if (!shard.whole) open.push_back(shard.number);
    return fail(fmt::format("{}: not done: shard {}", folder.path.string(), cluster::number_list(open)),
                "./strata status shows why; `./strata runs merge` joins what there is", Exit::usage);
  }
  std::vector<std::string> stores;
  for (int shard = 1; shard <= folder.shards; ++shard) stores.push_back(folder.store_of(shard).string());
  STRATA_TRY(join_stores(stores, store::Store::path_of(a.store)));
  for (const auto& shard : progress.shards)
    if (!shard.run.empty()) {
      answer(fmt::format("./strata show {}{} has them as one\n", shard.run,
                         a.store.empty() ? "" : " --store " + escape::shell_word(a.store)));
      break;
    }
  return 0;
}

Result<int> cancel(const SharedFolder& folder, const Progress& progress) {
  std::vector<std::string> jobs;
  for (const auto& shard : progress.shards)
    if (cluster::is_under_way(shard.end.state)) jobs.push_back(fmt::format("{}_{}", shard.job, shard.number));
  if (!progress.queue_known)
    return fail("what is under way is not known: " + progress.notes.front(), "", Exit::environment);
  if (!jobs.empty()) STRATA_TRY(cluster::cancel(jobs));
  answer(fmt::format("{} shard{} cancelled; what they measured is stored, and the same command continues: {}\n",
                     jobs.size(), jobs.size() == 1 ? "" : "s", folder.command));
  return 0;
}

Result<int> show_status(const StatusArguments& a) {
  const auto format = STRATA_TRY(format_option(a.format));
  const fs::path path = a.folder.empty() ? STRATA_TRY(cluster::newest_folder()) : fs::path(a.folder);
  const auto folder = STRATA_TRY(cluster::read_shared_folder(path));
  const auto progress = cluster::progress_of(folder);
  if (a.cancel) return cancel(folder, progress);
  if (a.merge) return merge(a, folder, progress);
  if (format == report::Format::json)
    answer_json(json_of(folder, progress), 1);
  else
    print_table(folder, progress, format);
  if (format == report::Format::text) print_next(folder, progress);
  const bool waits = progress.count(TaskState::pending) + progress.count(TaskState::running) > 0;
  return progress.missing().empty() || waits ? 0 : 1;
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("status", "how far a sweep or a training on a cluster is, shard by shard");
  auto a = std::make_shared<StatusArguments>();
  verb->add_option("folder", a->folder, "the folder that --on slurm printed (default: the newest in the data folder)");
  auto* merges = verb->add_flag("--merge", a->merge, "when all shards are done: join their stores, for one report");
  add_store(*verb, a->store)->needs(merges);
  verb->add_flag("--cancel", a->cancel, "cancel what is under way; the command that submitted it continues it")
      ->excludes(merges);
  format_choice(verb->add_option("--format", a->format, "of the table"));
  verb->footer(
      "Exit codes: 0 all shards are done, or some are under way; 1 none is under way and some are not done; 2 wrong "
      "usage, nothing was sent from that folder, or --merge before all are done; 3 the queue cannot be asked what to "
      "cancel.");
  set_action(*verb, exit_code, [a] { return show_status(*a); });
}

}  // namespace strata::cli
