// SPDX-License-Identifier: Apache-2.0
#include "cli/on_slurm.hpp"

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cluster/slurm.hpp"
#include "common/escape.hpp"

namespace strata::cli {

Result<int> send_to_slurm(const requests::Request& request, const RunArguments& a, const engine::Whole& whole) {
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

}  // namespace strata::cli
