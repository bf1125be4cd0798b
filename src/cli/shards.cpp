// SPDX-License-Identifier: Apache-2.0
// `--shard`, `--on slurm`: a sweep or a training of which several processes do a part each (docs/cluster.md).
#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/run_verbs.hpp"
#include "cluster/slurm.hpp"
#include "common/escape.hpp"
#include "requests/codec.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace {

Result<int> send_to_slurm(const requests::Request& request, const RunArguments& a, const engine::ShardedWork& whole) {
  const auto sent = STRATA_TRY(engine::send_shards(request, a.cluster, whole, a.dry_run));
  const auto& folder = sent.folder;
  const auto status = "./strata status " + escape::shell_word(folder.path.string());
  const auto shards = fmt::format("{} of {} shard{} of {} {}", sent.shards.size(), folder.shards,
                                  folder.shards == 1 ? "" : "s", folder.parts, folder.parts_name());
  if (sent.shards.empty())
    answer(fmt::format("nothing to send: {}; {}\n",
                       sent.all_done ? "all shards are done" : "all shards are done or under way", status));
  else if (a.dry_run)
    answer(
        fmt::format("would send {} ({}) from {}\n", shards, cluster::number_list(sent.shards), folder.path.string()));
  else
    answer(fmt::format("job {}: {}, a node each\nfolder {}: all nodes must see it\n{}\n", sent.job, shards,
                       folder.path.string(), status));
  return 0;
}

}  // namespace

Result<std::optional<int>> split_run(const requests::Request& request, RunArguments& a,
                                     std::optional<engine::OwnShard>& own) {
  if (!a.cluster.splits()) return std::nullopt;
  const auto whole = STRATA_TRY(engine::sharded_work(request));
  if (!a.cluster.on.empty()) return send_to_slurm(request, a, whole);
  ProgressLine line;
  own = STRATA_TRY(
      engine::own_shard(a.cluster, requests::common_of(request), whole, store::Store::path_of(a.store), a, line));
  if (own->done.empty()) return std::nullopt;
  answer(fmt::format("shard {} is done: ./strata show {}\n", own->shard.text(), own->done));
  return 0;
}

}  // namespace strata::cli
