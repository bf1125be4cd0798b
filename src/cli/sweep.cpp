// SPDX-License-Identifier: Apache-2.0
// `strata sweep MODEL --batch ... --size ...`: one network over a grid of cases, corners first, within a budget; who
// may be the fastest where.
#include "cli/sweep.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/document.hpp"
#include "cli/on_slurm.hpp"
#include "cli/option.hpp"
#include "cli/sharding.hpp"
#include "cli/verbs.hpp"
#include "report/sweep.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

int show_sweep(const CompareArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return print_error(run.error());
  const auto document = report::sweep_document(*run);
  engine::keep_verdict(store, *run, document.summary);
  if (const int code = a.quiet ? 0 : print_document(document, a.format); code != 0) return code;
  return a.output.empty() ? write_stored_page(document, setting.place, store.path(), setting.run_id)
                          : write_page(document, setting.place, a.output);
}

}  // namespace

void add_sweep_options(CLI::App& verb, CompareArguments& a) {
  add_compare_options(verb, a);
  a.whole_budget = true;
  verb.get_option("--budget")
      ->description(
          "time of the whole sweep, as 40m: shared equally by the points that are left, corners first (default: the "
          "preset's measured time for each point)");
  duration(verb.add_option("--point-time", a.point_time,
                           "measured time of every point, as 10s (default: its share of the budget, else the "
                           "preset's)"));
  verb.add_flag(
      "--full-proof", a.full_proof,
      "prove every point as `compare` does, not the corners alone: slower, the proof of a point is then complete");
  verb.add_option("--find-batch", a.find_batch,
                  "search for a batch by doubling and bisecting instead of measuring a list: throughput, memory, "
                  "utilisation, or p99=20ms; --batch LOW..HIGH*2 gives the range (default: 1 and 4096)")
      ->type_name("RULE");
  verb.add_flag("--retry", a.retry, "also run levels at points no smaller than one at which they ran out of memory");
  add_cluster_options(verb, a.cluster, "points");
}

Result<int> run_sweep(CompareArguments& a) {
  std::optional<OwnShard> own;
  if (a.cluster.splits()) {
    if (!a.find_batch.empty())
      return fail("--find-batch and shards exclude each other: where it searches next depends on all results",
                  "leave one of them out", Exit::usage);
    const auto whole = STRATA_TRY(whole_sweep(a));
    if (!a.cluster.on.empty()) return send_to_slurm(a, a, whole);
    auto shard = STRATA_TRY(own_shard(a, a, whole));
    if (!shard.done.empty()) return say_shard_done(shard);
    own = std::move(shard);
  }
  const auto keep = [&](std::vector<Json>& specs) { specs = cluster::part_of(std::move(specs), own->shard); };
  return run_as(a, own ? engine::sweep(a, a, keep, own->settings) : engine::sweep(a, a), show_sweep);
}

void add_sweep(CLI::App& app, int& exit_code, int argc, char** argv) {
  auto* verb = app.add_subcommand(
      "sweep", "compare over a grid of batches, sizes, threads, precisions: which level is the fastest where");
  auto a = std::make_shared<CompareArguments>();
  a->words.assign(argv + 1, argv + argc);
  add_sweep_options(*verb, *a);
  verb->callback([a, &exit_code] {
    const auto code = run_sweep(*a);
    exit_code = code ? *code : print_error(code.error());
  });
}

}  // namespace strata::cli
