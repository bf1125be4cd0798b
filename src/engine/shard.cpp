// SPDX-License-Identifier: Apache-2.0
#include "engine/shard.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "common/places.hpp"
#include "data/cache.hpp"
#include "plan/options.hpp"
#include "plan/scale.hpp"
#include "requests/codec.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// As Slurm calls it, else as it calls itself.
std::string node_name() {
  if (const char* slurm = std::getenv("SLURMD_NODENAME"); slurm && *slurm) return slurm;
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

// However it is spelled; of where it lies only the name counts (cluster::id_of_whole).
std::string from_root(const std::string& path) {
  std::error_code ec;
  return path.empty() ? path : fs::absolute(path, ec).lexically_normal().string();
}

// What is asked, beside the seed of the order. How long and how much memory may be taken makes no other whole, nor
// where on a machine things lie: environments go by their names.
Result<Json> question_of(requests::Request request) {
  auto& common = requests::common_of(request);
  auto& o = common.options;
  for (auto* path : {&o.weights, &o.input_file, &o.input_from}) *path = from_root(*path);
  o.model = STRATA_TRY(plan::absolute_model(o.model));
  if (data::is_folder(o.dataset)) o.dataset = from_root(o.dataset);
  if (auto* train = std::get_if<requests::TrainRequest>(&request); train && data::is_folder(train->dataset))
    train->dataset = from_root(train->dataset);
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
Result<std::optional<store::Run>> newest_run(const fs::path& path, const store::ShardFacts& shard) {
  if (!there_is(path)) return std::nullopt;
  const auto store = STRATA_TRY(store::Store::open_existing(path));
  auto runs = STRATA_TRY(store.list_runs(0));
  for (auto& run : runs)
    if (run.settings.shard.whole == shard.whole && run.settings.shard.shard == shard.shard)
      return std::optional(std::move(run));
  return std::nullopt;
}

Result<void> go_on(const fs::path& path, RunContext& context, OwnShard& own, EventSink& events) {
  if (path.has_parent_path()) {
    std::error_code ignored;  // opening the store says it
    fs::create_directories(path.parent_path(), ignored);
  }
  own.lock = std::make_shared<FileLock>(path.string() + ".lock", [&] {
    events.note(fmt::format("shard {}: another process is at it: waiting for its end", own.shard.text()));
  });
  const auto earlier = STRATA_TRY(newest_run(path, own.facts));
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
  events.note(fmt::format("shard {}: continuing run {}", own.shard.text(), run.run_id));
  context.resumed = std::move(run);
  return {};
}

Result<ShardedWork> sharded_sweep(const requests::SweepRequest& request) {
  if (!request.find_batch.empty())
    return fail("--find-batch and shards exclude each other: where it searches next depends on all results",
                "leave one of them out", Exit::usage);
  const auto specs = STRATA_TRY(plan::specs_of(request.options));
  auto question = STRATA_TRY(question_of(request));
  return ShardedWork{"sweep", specs.size(), std::move(question)};
}

Result<ShardedWork> sharded_training(const requests::TrainRequest& request) {
  if (request.sweep_init || request.init.find(';') != std::string::npos)
    return fail("several initialisations are not split over shards",
                "a call for each: --init " + request.init.substr(0, request.init.find(';')), Exit::usage);
  int repeats = request.repeats;
  if (!request.scale.empty()) {
    const auto scale = STRATA_TRY(plan::parse_scale(request.scale));
    repeats = plan::scaled(scale, request.epochs, request.repeats).repeats;
  }
  auto question = STRATA_TRY(question_of(request));
  return ShardedWork{"train", static_cast<std::size_t>(repeats), std::move(question)};
}

}  // namespace

std::string ShardedWork::id(std::optional<std::int64_t> order_seed, int shards) const {
  auto all = question;
  all["order_seed"] = order_seed ? Json(*order_seed) : Json();
  if (verb == "train") all["shards"] = shards;
  return cluster::id_of_whole(all);
}

std::vector<int> OwnShard::numbers() const {
  std::vector<int> own;
  for (std::size_t part = 0; part < parts; ++part)
    if (shard.has(part)) own.push_back(static_cast<int>(part));
  return own;
}

Result<ShardedWork> sharded_work(const requests::Request& request) {
  if (const auto* sweep = std::get_if<requests::SweepRequest>(&request)) return sharded_sweep(*sweep);
  if (const auto* train = std::get_if<requests::TrainRequest>(&request)) return sharded_training(*train);
  return fail(fmt::format("{} is not split into shards", requests::verb_of(request)),
              "sweep and train are: their points and repeats", Exit::usage);
}

Result<OwnShard> own_shard(const ShardChoice& chosen, const CompareRequest& request, const ShardedWork& whole,
                           const fs::path& store, RunContext& context, EventSink& events) {
  const auto shard = STRATA_TRY(cluster::read_shard(chosen.shard));
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
  own.parts = whole.parts;
  const auto node = node_name();
  own.facts = {.shard = shard.text(), .whole = whole.id(seed, shard.count), .node = node, .parts = whole.parts};
  if (chosen.go_on && !context.resumed) STRATA_TRY(go_on(store, context, own, events));
  // what it did on another node before stays named
  const auto before = context.resumed ? context.resumed->settings.shard.node : std::string();
  if (!before.empty() && before != node) own.facts.node = before.ends_with(", " + node) ? before : before + ", " + node;
  return own;
}

}  // namespace strata::engine
