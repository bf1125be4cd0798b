// SPDX-License-Identifier: Apache-2.0
#include "engine/measure_request.hpp"

#include "common/interrupt.hpp"
#include "engine/queries.hpp"
#include "requests/codec.hpp"

namespace strata::engine {
namespace {

Result<MeasuredRun> measure(const CompareRequest& asked, const RunContext& context, const std::string& store_name,
                            RunKind kind, EventSink& events) {
  const auto path = store::Store::path_of(store_name);
  if (!store_name.empty()) {
    kind.kept = context.resumed ? context.resumed->settings.kept : store::Kept();
    kind.kept->store = store_name;
  }
  auto ready = STRATA_TRY(prepare_run(asked, context, path, kind, events));
  auto store = STRATA_TRY(store::Store::open(path));
  auto ended = STRATA_TRY(run_prepared(ready, asked, context, store, kind, events));
  return MeasuredRun{.run_id = ready.setting.run_id,
                     .has_case = ended.has_case,
                     .failed = ended.failed,
                     .exit_code = ended.exit_code()};
}

// The exit code of an entry.
Result<int> measure_entry(const requests::Request& request, const RunContext& context, const std::string& store,
                          EventSink& events) {
  auto done = STRATA_TRY(measure_request(request, context, store, {}, events));
  if (done.has_case) STRATA_TRY(kept_result(store::Store::path_of(store), done.run_id));
  if (done.failed) return tl::unexpected(std::move(*done.failed));
  return done.exit_code;
}

}  // namespace

Result<MeasuredRun> measure_request(const requests::Request& request, RunContext context, const std::string& store,
                                    const ShardChoice& chosen, EventSink& events) {
  std::optional<OwnShard> own;
  if (!chosen.shard.empty()) {
    const auto whole = STRATA_TRY(sharded_work(request));
    own = STRATA_TRY(
        own_shard(chosen, requests::common_of(request), whole, store::Store::path_of(store), context, events));
    if (!own->done.empty()) return MeasuredRun{.run_id = own->done, .has_case = true, .failed = {}};
  }
  if (const auto* compare = std::get_if<CompareRequest>(&request))
    return measure(*compare, context, store, comparison(*compare), events);
  if (const auto* sweep_request = std::get_if<SweepRequest>(&request))
    return measure(*sweep_request, context, store, sweep(*sweep_request, context, own), events);
  const auto* train = std::get_if<TrainRequest>(&request);
  if (train == nullptr) return fail(requests::verb_of(request) + " makes no run", "", Exit::usage);
  auto plan = STRATA_TRY(plan_training(*train, context, own ? own->numbers() : std::vector<int>()));
  return measure(plan, context, store, training(plan, context, own), events);
}

Result<MeasuredRun> measure_suite(const requests::SuiteRequest& request, const std::string& store, EventSink& events) {
  const auto ready = STRATA_TRY(read_suite(request, store));
  SuiteRun suite_run(describe_suite(ready.suite, ready.entries, request, requests::command_of(request, store), "text"),
                     ready.store);
  const auto planned = STRATA_TRY(plan_entries(ready.suite, ready.entries, ready.store, events));
  if (interrupted()) return MeasuredRun{};
  STRATA_TRY(suite_run.run(planned, false, events, [&](const auto& entry, const RunContext& context) {
    return measure_entry(entry, context, store, events);
  }));
  return MeasuredRun{.run_id = suite_run.id(), .has_case = true, .failed = {}, .exit_code = suite_run.exit_code()};
}

Result<nlohmann::json> kept_result(const std::filesystem::path& path, const std::string& run_id) {
  auto store = STRATA_TRY(store::Store::open(path));
  const auto run = STRATA_TRY(store.load_run(run_id));
  auto shown = STRATA_TRY(shown_run(run, store));
  keep_verdicts(store, run_id, shown.verdicts);
  return std::move(shown.result);
}

}  // namespace strata::engine
