// SPDX-License-Identifier: Apache-2.0
#include "cli/run_arguments.hpp"

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/option.hpp"

namespace strata::cli {

void add_run_arguments(CLI::App& verb, RunArguments& a) {
  verb.add_flag("--dry-run", a.dry_run, "print the plan: what would run at which levels, and how long it takes");
  add_store(verb, a.store);
  format_choice(verb.add_option("--format", a.format, "of the result on standard output"));
  verb.add_option("-o,--output", a.output, "where to write the HTML report (default: beside the store)")
      ->type_name("PATH");
}

void add_cluster_options(CLI::App& verb, ClusterArguments& a, const std::string& parts) {
  auto* shard = verb.add_option("--shard", a.shard,
                                fmt::format("a part of the {}: 2/8 is every 8th, from the 2nd on, in the plan's order; "
                                            "the others go to other processes with the same options (docs/cluster.md)",
                                            parts))
                    ->type_name("I/N");
  verb.add_flag("--resume", a.go_on, "continue the shard's newest run in the store, unless it is done")->needs(shard);
  auto* on = choice(verb.add_option("--on", a.on,
                                    "send it to a cluster: an array of jobs, a shard and a node each; again: what is "
                                    "missing of it"),
                    {"slurm"});
  on->excludes(shard);
  const auto add = [&](const char* name, auto& value, const std::string& about, const char* type) {
    verb.add_option(name, value, about)->type_name(type)->needs(on);
  };
  add("--partition", a.partition, "the partition (queue) of the nodes", "NAME");
  whole(verb.add_option("--nodes", a.nodes,
                        fmt::format("shards, at most as many as {} (default: the nodes of the partition)", parts)),
        1, cluster::most_shards)
      ->needs(on);
  add("--constraint", a.constraint, "only nodes with these features, so that all are of one kind", "FEATURES");
  verb.add_option("--sbatch", a.sbatch, "an option of sbatch, as --sbatch time=2:00:00, again for each more")
      ->type_name("OPTION")
      ->allow_extra_args(false)
      ->needs(on);
  add("--folder", a.folder,
      "where tasks write their stores and logs; all nodes must see it (default: one for these options in the data "
      "folder)",
      "DIR");
}

store::Kept kept_of(const RunArguments& a) {
  return {.store = a.store, .format = a.format == RunArguments().format ? "" : a.format, .output = a.output};
}

void take_kept(RunArguments& a, const store::Settings& settings) {
  if (!settings.kept.format.empty()) a.format = settings.kept.format;
  a.output = settings.kept.output;
  a.cluster.shard = settings.shard.shard;
}

}  // namespace strata::cli
