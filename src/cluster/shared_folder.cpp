// SPDX-License-Identifier: Apache-2.0
#include "cluster/shared_folder.hpp"

#include <fmt/format.h>

#include <limits>

#include "cluster/shard.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "common/write_whole.hpp"
#include "store/store.hpp"

namespace strata::cluster {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr int kFormat = 1;
constexpr std::int64_t kMostParts = 1'000'000'000;

fs::path about(const fs::path& folder) {
  return folder / "split.json";
}

fs::path file_of(const SharedFolder& folder, int shard, const char* end) {
  return folder.path / fmt::format("shard-{}{}", shard, end);
}

}  // namespace

fs::path SharedFolder::store_of(int shard) const {
  return file_of(*this, shard, ".db");
}
fs::path SharedFolder::log_of(int shard) const {
  return file_of(*this, shard, ".log");
}
fs::path SharedFolder::end_of(int shard) const {
  return file_of(*this, shard, ".end");
}
fs::path SharedFolder::script() const {
  return path / "task.sh";
}
std::string SharedFolder::parts_name() const {
  return verb == "train" ? "repeats" : "points";
}

bool is_shared_folder(const fs::path& path) {
  return there_is(about(path));
}

Result<SharedFolder> read_shared_folder(const fs::path& path) {
  if (!is_shared_folder(path))
    return fail(fmt::format("{}: nothing was sent to a cluster from this folder (it has no split.json)", path.string()),
                "name the folder that --on slurm printed", Exit::usage);
  const auto json = STRATA_TRY(outside::read_file(about(path)));
  SharedFolder folder;
  std::error_code ec;
  folder.path = fs::absolute(path, ec).lexically_normal();
  outside::Fields fields(json, about(path).string(), "name another --folder");
  fields.set_exit(Exit::usage);
  fields.integer("format", kFormat, kFormat);
  folder.verb = fields.text("verb");
  folder.id = fields.text("id");
  folder.shards = static_cast<int>(fields.integer("shards", 1, most_shards));
  folder.parts = fields.integer("parts", 1, kMostParts);
  folder.order_seed = fields.integer("order_seed", 0, std::numeric_limits<std::int64_t>::max());
  folder.command = fields.text("command");
  const Json& sent = fields.array("submissions");
  for (const Json& element : sent) {
    outside::Fields submission(element, about(path).string() + ": a submission");
    Submission read{submission.text("job"), submission.text("sent"), {}};
    if (read.job.empty() || read.job.find_first_not_of("0123456789") != std::string::npos)
      submission.complain("job", read.job, "a number");  // it becomes a word of scancel's
    for (const auto shard : submission.integers("shards", std::nullopt, 1, folder.shards))
      read.shards.push_back(static_cast<int>(shard));
    if (submission.error()) return tl::unexpected(*submission.error());
    folder.submissions.push_back(std::move(read));
  }
  if (fields.error()) return tl::unexpected(*fields.error());
  return folder;
}

Result<void> write_shared_folder(const SharedFolder& folder) {
  Json submissions = Json::array();
  for (const auto& submission : folder.submissions)
    submissions.push_back({{"job", submission.job}, {"sent", submission.sent}, {"shards", submission.shards}});
  const Json all{{"format", kFormat},         {"verb", folder.verb},       {"id", folder.id},
                 {"shards", folder.shards},   {"parts", folder.parts},     {"order_seed", folder.order_seed},
                 {"command", folder.command}, {"submissions", submissions}};
  return write_whole(about(folder.path), all.dump(1) + "\n");
}

fs::path default_folders() {
  const auto store = store::Store::default_path();
  return store.empty() ? fs::path() : store.parent_path() / "clusters";
}

Result<fs::path> newest_folder() {
  std::error_code ec;
  fs::path newest;
  fs::file_time_type when;
  for (const auto& entry : fs::directory_iterator(default_folders(), ec)) {
    if (!is_shared_folder(entry.path())) continue;
    const auto time = fs::last_write_time(about(entry.path()), ec);
    if (newest.empty() || time > when) {
      newest = entry.path();
      when = time;
    }
  }
  if (!newest.empty()) return newest;
  return fail(fmt::format("nothing was sent to a cluster from {}", default_folders().string()),
              "./strata sweep MODEL ... --on slurm; or name the folder: ./strata status FOLDER", Exit::usage);
}

}  // namespace strata::cluster
