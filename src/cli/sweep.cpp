// SPDX-License-Identifier: Apache-2.0
// `strata sweep MODEL --batch ... --size ...`: one network over a grid of cases, corners first, within a budget; who
// may be the fastest where.
#include "report/sweep.hpp"

#include "cli/on_slurm.hpp"
#include "cli/run_verbs.hpp"
#include "engine/shard.hpp"

namespace strata::cli {
using Json = nlohmann::json;

Result<int> run_sweep(const requests::SweepRequest& request, RunArguments& a) {
  std::optional<engine::OwnShard> own;
  const auto path = store::Store::path_of(a.store);
  if (a.cluster.splits()) {
    if (!request.find_batch.empty())
      return fail("--find-batch and shards exclude each other: where it searches next depends on all results",
                  "leave one of them out", Exit::usage);
    const auto whole = STRATA_TRY(engine::whole_sweep(request));
    if (!a.cluster.on.empty()) return send_to_slurm(request, a, whole);
    ProgressLine line;
    auto shard = STRATA_TRY(engine::own_shard(a.cluster, request, whole, path, a, line));
    if (!shard.done.empty()) return say_shard_done(shard);
    own = std::move(shard);
  }
  const auto keep = [&](std::vector<core::CaseSpec>& specs) { specs = cluster::part_of(std::move(specs), own->shard); };
  const auto print = [&](const engine::Prepared& ready) {
    return print_plan(ready, a, true, [&](auto& events) { return engine::plan_sweep(ready, request, path, &events); });
  };
  return run_as(request, a, own ? engine::sweep(request, a, keep, own->settings) : engine::sweep(request, a),
                {.print_plan = print, .show = [&](auto& store, const auto& setting) {
                   return show_document(a, store, setting, report::sweep_document);
                 }});
}

}  // namespace strata::cli
