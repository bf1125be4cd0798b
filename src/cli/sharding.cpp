// SPDX-License-Identifier: Apache-2.0
#include "cli/sharding.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "common/lookup.hpp"
#include "common/places.hpp"
#include "plan/options.hpp"
#include "plan/scale.hpp"
#include "requests/codec.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// As Slurm calls it, else as it calls itself.
std::string node_name() {
  if (const char* slurm = std::getenv("SLURMD_NODENAME"); slurm && *slurm) return slurm;
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

// What is asked, beside the seed of the order. How long and how much memory may be taken makes no other whole, nor
// where on a machine things lie: environments go by their names.
Json question_of(requests::Request request) {
  auto& common = requests::common_of(request);
  auto& o = common.options;
  Json environments = Json::array();
  for (const auto& environment : o.environments) environments.push_back(environment.name);
  o.order_seed.reset();
  o.budget_s.reset();
  o.timeout_s.reset();
  o.memory_limit_gib.reset();
  o.environments.clear();
  o.data_dir.clear();
  o.fresh = false;
  common.python.clear();
  auto question = requests::to_json(request);
  question["environments"] = environments;
  return question;
}

// The newest run of the shard that the store has. Its cases are left out.
Result<std::optional<store::Run>> newest_run(const fs::path& path, const Json& settings) {
  if (!there_is(path)) return std::nullopt;
  const auto store = STRATA_TRY(store::Store::open_existing(path));
  auto runs = STRATA_TRY(store.list_runs(0));
  for (auto& run : runs)
    if (lookup::text(run.settings, "shard_of") == lookup::text(settings, "shard_of") &&
        lookup::text(run.settings, "shard") == lookup::text(settings, "shard"))
      return std::optional(std::move(run));
  return std::nullopt;
}

Result<void> go_on(RunArguments& a, OwnShard& own) {
  const auto path = store::Store::path_of(a.store);
  if (!a.store.empty() && path.has_parent_path()) {
    std::error_code ignored;  // opening the store says it
    fs::create_directories(path.parent_path(), ignored);
  }
  own.lock = std::make_shared<FileLock>(path.string() + ".lock", [&] {
    tell(fmt::format("shard {}: another process is at it: waiting for its end\n", own.shard.text()));
  });
  const auto earlier = STRATA_TRY(newest_run(path, own.settings));
  if (!earlier) return {};
  const auto state = store::state_of(*earlier);
  if (state == store::RunState::running)
    return fail(
        fmt::format("shard {} is being measured by another process, as run {}", own.shard.text(), earlier->run_id),
        "let it end; `./strata list runs` shows it", Exit::usage);
  if (state == store::RunState::finished) {
    own.done = earlier->run_id;
    return {};
  }
  const auto store = STRATA_TRY(store::Store::open_existing(path));
  auto run = STRATA_TRY(store.load_id(earlier->run_id));
  tell(fmt::format("shard {}: continuing run {}\n", own.shard.text(), run.run_id));
  a.resumed = std::move(run);
  return {};
}

}  // namespace

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

std::string Whole::id(std::optional<std::int64_t> order_seed, int shards) const {
  auto all = question;
  all["order_seed"] = order_seed ? Json(*order_seed) : Json();
  if (verb == "train") all["shards"] = shards;
  return cluster::id_of_whole(all);
}

Result<Whole> whole_sweep(const requests::SweepRequest& request) {
  const auto specs = STRATA_TRY(plan::specs_of(request.options));
  return Whole{"sweep", specs.size(), question_of(request)};
}

Result<Whole> whole_training(const requests::TrainRequest& request) {
  int repeats = request.repeats;
  if (!request.scale.empty()) {
    const auto scale = STRATA_TRY(plan::parse_scale(request.scale));
    repeats = plan::cut(scale, request.epochs, request.repeats).repeats;
  }
  return Whole{"train", static_cast<std::size_t>(repeats), question_of(request)};
}

Result<OwnShard> own_shard(const requests::CompareRequest& request, RunArguments& a, const Whole& whole) {
  const auto shard = STRATA_TRY(cluster::read_shard(a.cluster.shard));
  if (static_cast<std::size_t>(shard.count) > whole.parts)
    return fail(fmt::format("--shard {}: there are {} {} to split", shard.text(), whole.parts, whole.parts_name()),
                fmt::format("at most as many shards as {}: --shard 1/{}", whole.parts_name(), whole.parts),
                Exit::usage);
  const auto seed = request.options.order_seed;
  if (whole.verb == "train" && !seed)
    return fail(fmt::format("--shard {}: the shards of a training need one seed of the order of images", shard.text()),
                "give all of them the same: --order-seed 1", Exit::usage);
  OwnShard own;
  own.shard = shard;
  const auto node = node_name();
  own.settings = {
      {"shard", shard.text()}, {"shard_of", whole.id(seed, shard.count)}, {"parts", whole.parts}, {"node", node}};
  if (a.cluster.go_on && !a.resumed) STRATA_TRY(go_on(a, own));
  // what it did on another node before stays named
  const auto before = a.resumed ? lookup::text(a.resumed->settings, "node") : std::string();
  if (!before.empty() && before != node)
    own.settings["node"] = before.ends_with(", " + node) ? before : before + ", " + node;
  return own;
}

int say_shard_done(const OwnShard& own) {
  answer(fmt::format("shard {} is done: ./strata show {}\n", own.shard.text(), own.done));
  return 0;
}

}  // namespace strata::cli
