// SPDX-License-Identifier: Apache-2.0
// `strata sweep MODEL --batch ... --size ...`: one network over a grid of cases, corners first, within a budget; who
// may be the fastest where.

#include "report/sweep.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/document.hpp"
#include "cli/on_slurm.hpp"
#include "cli/run_verbs.hpp"
#include "cli/sharding.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

int show_sweep(const RunArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return print_error(run.error());
  const auto document = report::sweep_document(*run);
  engine::keep_verdict(store, *run, document.summary);
  if (const int code = a.quiet ? 0 : print_document(document, a.format); code != 0) return code;
  return a.output.empty() ? write_stored_page(document, setting.place, store.path(), setting.run_id)
                          : write_page(document, setting.place, a.output);
}

}  // namespace

Result<int> run_sweep(requests::SweepRequest& request, RunArguments& a) {
  std::optional<OwnShard> own;
  if (a.cluster.splits()) {
    if (!request.find_batch.empty())
      return fail("--find-batch and shards exclude each other: where it searches next depends on all results",
                  "leave one of them out", Exit::usage);
    const auto whole = STRATA_TRY(whole_sweep(request));
    if (!a.cluster.on.empty()) return send_to_slurm(request, a, whole);
    auto shard = STRATA_TRY(own_shard(request, a, whole));
    if (!shard.done.empty()) return say_shard_done(shard);
    own = std::move(shard);
  }
  const auto keep = [&](std::vector<Json>& specs) { specs = cluster::part_of(std::move(specs), own->shard); };
  const auto path = store::Store::path_of(a.store);
  return run_as(
      request, a, own ? engine::sweep(request, a, keep, own->settings) : engine::sweep(request, a),
      {.result = show_sweep,
       .plan = [&](const auto& ready, auto* events) { return engine::plan_sweep(ready, request, path, events); },
       .of_sweep = true});
}

}  // namespace strata::cli
