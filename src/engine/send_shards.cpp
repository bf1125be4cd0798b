// SPDX-License-Identifier: Apache-2.0
#include "engine/send_shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "cluster/progress.hpp"
#include "common/escape.hpp"
#include "common/file_lock.hpp"
#include "common/places.hpp"
#include "common/write_whole.hpp"
#include "level/installed_levels.hpp"
#include "level/level.hpp"
#include "plan/jobs.hpp"
#include "requests/codec.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using cluster::SharedFolder;
namespace {

std::string quoted_words(const std::vector<std::string>& words, std::string (*quoted)(std::string_view)) {
  std::vector<std::string> all;
  for (const auto& word : words) all.push_back(quoted(word));
  return fmt::format("{}", fmt::join(all, " "));
}

// sbatch replaces %j and its like in names of files, unless a backslash is in them.
bool sbatch_takes(const fs::path& path) {
  const auto name = path.string();
  return name.find_first_of("%\\") == std::string::npos && escape::one_line(name) == name;
}

bool is_name_of_shell(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && fits(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return fits(c) || (c >= '0' && c <= '9'); });
}

// One of all shards.
std::optional<std::int64_t>& order_seed_of(requests::Request& request) {
  return requests::common_of(request).options.order_seed;
}

Result<fs::path> make_folder(requests::Request& request, const ClusterTarget& target, const ShardedWork& whole,
                             bool dry_run) {
  std::error_code ec;
  fs::path path = target.folder;
  if (path.empty()) {
    if (cluster::default_folders().empty())
      return fail("there is no place for the folder that tasks share: HOME is not set",
                  "name one that all nodes see: --folder DIR", Exit::environment);
    path = cluster::default_folders() / fmt::format("{}-{}", whole.verb, whole.id(order_seed_of(request), 0));
  }
  path = fs::absolute(path, ec).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (!sbatch_takes(path))
    return fail(fmt::format("--folder {}: sbatch reads %, \\ and control characters in a path as something else",
                            escape::one_line(path.string())),
                "name a folder without them: --folder DIR", Exit::usage);
  if (dry_run) return path;
  fs::create_directories(path, ec);
  if (ec || ::access(path.c_str(), W_OK) != 0)
    return fail(fmt::format("--folder {}: cannot be written{}", path.string(), ec ? ": " + ec.message() : ""),
                "name a folder that you may write to and that all nodes see: --folder DIR", Exit::usage);
  return path;
}

std::int64_t draw_seed() {
  return static_cast<std::int64_t>(std::random_device{}());
}

// The command that sends what is missing.
std::string command_that_sends(requests::Request request, const ClusterTarget& target, const fs::path& folder) {
  auto words = requests::command_words(request);
  words.insert(words.end(), {"--on", target.on, "--folder", folder.string()});
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--partition", target.partition);
  add("--constraint", target.constraint);
  for (const auto& option : target.sbatch) add("--sbatch", option);
  return requests::command_of(words);
}

// A folder in which nothing was sent yet. The seed becomes one of all shards.
Result<SharedFolder> begin_folder(requests::Request& request, const ClusterTarget& target, const ShardedWork& whole,
                                  const fs::path& path) {
  int nodes = target.nodes;
  if (nodes == 0) {
    nodes = STRATA_TRY(cluster::count_nodes(target.partition));
  }
  SharedFolder folder;
  folder.path = path;
  folder.verb = whole.verb;
  folder.shards = static_cast<int>(std::min<std::size_t>(
      {static_cast<std::size_t>(nodes), whole.parts, static_cast<std::size_t>(cluster::most_shards)}));
  folder.parts = static_cast<std::int64_t>(whole.parts);
  if (!order_seed_of(request)) order_seed_of(request) = draw_seed();
  folder.order_seed = *order_seed_of(request);
  folder.id = whole.id(order_seed_of(request), folder.shards);
  folder.command = command_that_sends(request, target, path);
  return folder;
}

// One in which something was sent: it must be this.
Result<SharedFolder> known_folder(requests::Request& request, const ClusterTarget& target, const ShardedWork& whole,
                                  const fs::path& path) {
  auto folder = cluster::read_shared_folder(path);
  if (!folder) return folder;
  if (!order_seed_of(request)) order_seed_of(request) = folder->order_seed;
  if (folder->verb != whole.verb || folder->id != whole.id(order_seed_of(request), folder->shards))
    return fail(fmt::format("{} is the folder of another {}: {}", path.string(), folder->verb, folder->command),
                "name another --folder", Exit::usage);
  const auto nodes = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(target.nodes), whole.parts));
  if (nodes > 0 && nodes != folder->shards)
    return fail(fmt::format("--nodes {}: {} was split into {} shards", target.nodes, path.string(), folder->shards),
                "leave --nodes out, or name another --folder", Exit::usage);
  return folder;
}

// What a task needs of this process's environment: where set-up put things. sbatch may be told to export nothing.
std::string exports() {
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string value = *entry;
    const auto equals = value.find('=');
    const auto name = value.substr(0, equals);
    const bool own = name.starts_with("STRATA_") && name != "STRATA_WORKER";
    if (!is_name_of_shell(name)) continue;  // it would be a command
    if (equals != std::string::npos && (own || name == "XDG_CACHE_HOME" || name == "XDG_DATA_HOME"))
      text += fmt::format("export {}={}\n", name, escape::script_word(value.substr(equals + 1)));
  }
  return text;
}

Result<void> write_script(const requests::Request& request, const SharedFolder& folder) {
  std::error_code ec;
  const auto program = fs::read_symlink("/proc/self/exe", ec);
  if (ec) return fail("what program this is cannot be read: /proc/self/exe: " + ec.message());
  const auto words = requests::command_words(request);
  const auto here = fs::current_path(ec).string();
  const auto text = fmt::format(
      "#!/bin/sh\n"
      "# Written by strata: a task of an array does its shard, and goes on with what an earlier try of it left.\n"
      "{}"
      "cd {} || exit 1\n"
      "task=$SLURM_ARRAY_TASK_ID\n"
      "shard={}/shard-$task\n"
      "rm -f \"$shard.end\"\n"
      "echo \"{}$task on $SLURMD_NODENAME\"\n"
      "trap : TERM INT HUP # strata has them too, keeps what it has and ends; then its exit code is written\n"
      "{} {} --shard \"$task/{}\" --resume --store \"$shard.db\"\n"
      "code=$?\n"
      "echo $code >\"$shard.end\"\n"
      "exit $code\n",
      exports(), escape::script_word(here), escape::script_word(folder.path.string()), cluster::begin_of_try,
      escape::script_word(program.string()), quoted_words(words, escape::script_word), folder.shards);
  return write_whole(folder.script(), text);
}

// "time=2:00:00", "--time=2:00:00" and "time 2:00:00" are one.
Result<std::string> option_of_sbatch(std::string text) {
  text.erase(0, std::min(text.find_first_not_of('-'), text.size()));
  if (const auto space = text.find(' '); space != std::string::npos && space < text.find('=')) text[space] = '=';
  if (text.empty())
    return fail("--sbatch: the option is empty", "name one of sbatch's, as --sbatch time=2:00:00", Exit::usage);
  return "--" + text;
}

Result<std::vector<std::string>> words_for_sbatch(const ClusterTarget& target, const SharedFolder& folder,
                                                  const std::vector<int>& shards) {
  // One that was preempted or lost its node is sent again by Slurm itself, and goes on; its log grows.
  std::vector<std::string> words{"--array=" + cluster::number_list(shards),
                                 "--nodes=1",
                                 "--exclusive",
                                 "--requeue",
                                 "--open-mode=append",
                                 "--job-name=strata-" + folder.verb,
                                 "--output=" + (folder.path / "shard-%a.log").string()};
  if (!target.partition.empty()) words.push_back("--partition=" + target.partition);
  if (!target.constraint.empty()) words.push_back("--constraint=" + target.constraint);
  for (const auto& text : target.sbatch) {
    auto option = STRATA_TRY(option_of_sbatch(text));
    words.push_back(std::move(option));
  }
  words.push_back(folder.script().string());
  return words;
}

// The job's id.
Result<std::string> send_array(const requests::Request& request, const ClusterTarget& target, SharedFolder& folder,
                               const std::vector<int>& shards) {
  const auto words = STRATA_TRY(words_for_sbatch(target, folder, shards));
  STRATA_TRY(write_script(request, folder));
  std::error_code ignored;
  for (const int shard : shards) fs::remove(folder.end_of(shard), ignored);  // of an earlier try
  const auto job = STRATA_TRY(cluster::submit(words));
  folder.submissions.push_back({job, utc_now(), shards});
  if (auto written = cluster::write_shared_folder(folder); !written) {
    (void)cluster::cancel({job});  // nobody would know of it
    return tl::unexpected(written.error());
  }
  return job;
}

// Those that a folder lacks.
Result<void> find_missing(SentShards& sent) {
  const auto progress = cluster::progress_of(sent.folder);
  if (!progress.queue_known)
    return fail(
        fmt::format("what of {} is under way is not known: {}", sent.folder.path.string(), progress.notes.front()),
        "nothing was sent; try again when the queue answers", Exit::environment);
  sent.shards = progress.missing();
  sent.all_done = progress.whole();
  return {};
}

// Typing errors are found here and not on a node.
Result<void> check_levels(requests::Request& request) {
  const auto& common = requests::common_of(request);
  const auto discovered = level::installed_levels(installation());
  STRATA_TRY(plan::choose_levels(discovered, common.options.levels, common.options.device));
  return {};
}

}  // namespace

Result<SentShards> send_shards(requests::Request request, const ClusterTarget& target, const ShardedWork& whole,
                               bool dry_run) {
  if (whole.parts < 1) return fail(fmt::format("there are no {} to split", whole.parts_name()), "", Exit::usage);
  STRATA_TRY(check_levels(request));
  const auto path = STRATA_TRY(make_folder(request, target, whole, dry_run));
  std::optional<FileLock> lock;  // two that send at once would send twice
  if (!dry_run) lock.emplace(path / "lock");
  const bool known = cluster::is_shared_folder(path);
  SentShards sent;
  sent.folder =
      STRATA_TRY(known ? known_folder(request, target, whole, path) : begin_folder(request, target, whole, path));
  sent.shards.resize(static_cast<std::size_t>(sent.folder.shards));
  std::iota(sent.shards.begin(), sent.shards.end(), 1);
  if (known) STRATA_TRY(find_missing(sent));
  if (dry_run || sent.shards.empty()) return sent;
  sent.job = STRATA_TRY(send_array(request, target, sent.folder, sent.shards));
  return sent;
}

}  // namespace strata::engine
