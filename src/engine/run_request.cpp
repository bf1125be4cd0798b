// SPDX-License-Identifier: Apache-2.0
#include "engine/run_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analysis/find_batch.hpp"
#include "engine/run_case.hpp"
#include "engine/sweep_runner.hpp"
#include "measure/machine_facts.hpp"
#include "plan/model_file.hpp"
#include "probe/machine.hpp"
#include "requests/codec.hpp"
#include "stats/schedule.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kHighestBatch = 4096;  // that is searched where nobody says another
constexpr double kShareOfMemory = 0.9;        // of what is available, that one level may take

// The machine never swaps: what one level alone may take is what there is.
void limit_memory(Prepared& ready) {
  auto& limit = ready.setting.options.memory_limit_gib;
  if (!limit && ready.setting.options.device == "cpu")
    limit = kShareOfMemory * static_cast<double>(probe::memory().available_bytes) / (1024.0 * 1024.0 * 1024.0);
}

// Corners first, so that a budget that ends early has seen the ends; a shard has the corners of the whole grid that
// fall to it.
void arrange_points(Prepared& ready, const plan::Grid& grid, const std::optional<cluster::Shard>& own) {
  auto& specs = ready.specs;
  if (own) specs = cluster::part_of(std::move(specs), *own);
  stats::Random random(ready.setting.order_seed);
  random.shuffle(specs);
  std::stable_partition(specs.begin(), specs.end(), [&](const core::CaseSpec& spec) { return grid.is_corner(spec); });
}

// The search begins at the least batch of the list; the list's ends are its bounds.
Result<BatchBounds> begin_search(const SweepRequest& request, Prepared& ready) {
  if (request.find_batch.empty()) return BatchBounds{};
  STRATA_TRY(analysis::parse_batch_rule(request.find_batch));
  std::vector<std::int64_t> named;
  for (const auto& spec : ready.specs)
    if (spec.batch) named.push_back(*spec.batch);
  if (named.empty()) named = {1, kHighestBatch};
  const auto [low, high] = std::minmax_element(named.begin(), named.end());
  const BatchBounds bounds{*low, *high};
  if (*low == *high)
    return fail(fmt::format("--find-batch searches between two batches; --batch is {}", *low),
                "name both ends, as --batch 1..256*2, or leave --batch out", Exit::usage);
  std::vector<core::CaseSpec> once;
  for (auto& spec : ready.specs) {
    spec.batch = *low;
    if (std::find(once.begin(), once.end(), spec) == once.end()) once.push_back(spec);
  }
  ready.specs = std::move(once);
  return bounds;
}

}  // namespace

RunKind comparison(const CompareRequest& request) {
  return {.verb = "", .measure = run_cases, .request = requests::to_json(request)};
}

RunKind sweep(const SweepRequest& request, const RunContext& context, const std::optional<OwnShard>& own) {
  struct Begun {
    std::optional<plan::Grid> grid;
    BatchBounds bounds;
  };
  const auto begun = std::make_shared<Begun>();
  const auto shard = own ? std::optional(own->shard) : std::nullopt;
  return {.verb = "sweep",
          .arrange = [&request, dry_run = context.dry_run, begun, shard](Prepared& ready) -> Result<void> {
            begun->bounds = STRATA_TRY(begin_search(request, ready));
            begun->grid.emplace(ready.specs);
            arrange_points(ready, *begun->grid, shard);
            if (!dry_run) limit_memory(ready);
            return {};
          },
          .measure =
              [&request, begun](Prepared& ready, measure::MachineFacts& facts, store::Store& store, StoredRun& stored,
                                EventSink& events) {
                return SweepRunner(request, begun->bounds, ready, *begun->grid, facts, store, stored, events).run();
              },
          .request = requests::to_json(request),
          .shard = own ? std::optional(own->facts) : std::nullopt};
}

RunKind training(TrainingPlan& plan, const RunContext& context, const std::optional<OwnShard>& own) {
  std::optional<store::TrainingFacts> judged;
  if (!context.resumed)  // else it is judged as it began
    judged = {.dataset = plan.dataset,
              .rule = plan.rule,
              .epochs = plan.epochs,
              .repeats = plan.repeats,
              .margin = plan.margin,
              .loss_margin = plan.loss_margin,
              .target = plan.target};
  return {.verb = "train",
          .arrange = [](Prepared& ready) -> Result<void> {
            drop_untrained(ready);
            return {};
          },
          .measure = [&plan](Prepared& ready, measure::MachineFacts& facts, store::Store& store, StoredRun& stored,
                             EventSink& events) { return run_training(plan, ready, facts, store, stored, events); },
          .request = plan.asked,
          .shard = own ? std::optional(own->facts) : std::nullopt,
          .training = std::move(judged)};
}

Result<Prepared> prepare_run(const CompareRequest& request, const RunContext& context, const fs::path& store,
                             const RunKind& kind, EventSink& events) {
  const auto stored_before = STRATA_TRY(store::Store::look_at(store));
  auto ready = STRATA_TRY(prepare(request, context, events));
  if (kind.arrange) STRATA_TRY(kind.arrange(ready));
  STRATA_TRY(check_ci_width(ready, stored_before));
  if (!context.dry_run) STRATA_TRY(check_resumed(ready, context));
  return ready;
}

Result<EndedRun> run_prepared(Prepared& ready, const CompareRequest& request, const RunContext& context,
                              store::Store& store, const RunKind& kind, EventSink& events) {
  if (const auto notice = plan::notice_of(request.options.model); !notice.empty()) events.note(notice);
  auto facts = measure::MachineFacts::of(ready.setting.machine, ready.setting.effort.budget_s, store);
  auto run = context.resumed ? *context.resumed : describe_run(ready, request, context);
  if (!kind.verb.empty()) run.settings.verb = kind.verb;
  run.settings.request = kind.request;
  run.settings.shard = kind.shard.value_or(run.settings.shard);
  run.settings.training = kind.training.value_or(run.settings.training);
  run.settings.kept = kind.kept.value_or(run.settings.kept);
  return carry_out(std::move(run), context.resumed.has_value(), ready, store,
                   [&](StoredRun& stored) { return kind.measure(ready, facts, store, stored, events); });
}

}  // namespace strata::engine
