// SPDX-License-Identifier: Apache-2.0
#include "engine/queries.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/result_json.hpp"
#include "cluster/join.hpp"
#include "common/places.hpp"
#include "engine/data_sets.hpp"
#include "engine/timed_commands.hpp"
#include "report/render/render.hpp"
#include "report/result.hpp"
#include "report/run_documents.hpp"
#include "report/timed_commands.hpp"
#include "store/run_state.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr int kRegression = 4, kUndecided = 5;

std::optional<Result<document::Document>> page_of(const store::Run& run, const store::Store& store) {
  if (report::is_training(run)) return report::training_document(run, store);
  if (report::is_sweep(run)) return report::sweep_document(run);
  if (report::is_suite(run)) return report::suite_document(run, store);
  return std::nullopt;
}

bool is_of_model(const std::vector<store::ListedCase>& cases, const std::string& model) {
  return std::any_of(cases.begin(), cases.end(), [&](const auto& one) {
    return one.id.substr(0, one.id.find('/')).find(model) != std::string::npos;
  });
}

}  // namespace

std::optional<Result<document::Document>> document_of(const store::Run& run, const store::Store& store) {
  if (!cluster::is_shard(run)) return page_of(run, store);
  const auto whole = cluster::with_other_shards(run, store);
  if (!whole) return Result<document::Document>(tl::unexpected(whole.error()));
  return page_of(*whole, store);
}

Result<ShownRun> shown_run(const store::Run& run, const store::Store& store) {
  const auto document = document_of(run, store);
  if (!document) {
    const auto result = report::result_of(run);
    return ShownRun{analysis::to_json(result), verdicts_of(result)};
  }
  if (!*document) return tl::unexpected(document->error());
  return ShownRun{Json::parse(STRATA_TRY(document::render(**document, "json", {}, {}))),
                  verdicts_of(run, (*document)->summary)};
}

Result<std::vector<ListedRun>> list_runs(const requests::RunsRequest& request, const fs::path& path) {
  if (!there_is(path)) return std::vector<ListedRun>();
  const auto store = STRATA_TRY(store::Store::open_existing(path));
  const bool all = request.name.empty() && request.model.empty() && request.since.empty();
  const auto stored = STRATA_TRY(store.list_runs(all ? request.limit : 0));
  std::vector<ListedRun> listed;
  for (const auto& run : stored) {
    if (request.limit > 0 && listed.size() == static_cast<std::size_t>(request.limit)) break;
    if (run.name.find(request.name) == std::string::npos || run.started < request.since) continue;
    const auto cases = STRATA_TRY(store.run_cases(run.run_id));
    if (!request.model.empty() && !is_of_model(cases, request.model)) continue;
    ListedRun one{.run = run.run_id,
                  .name = run.name,
                  .started = run.started,
                  .state = std::string(store::to_string(store::state_of(run))),
                  .verdicts = store::verdicts_of(cases),
                  .cases = {},
                  .command = run.command};
    for (const auto& run_case : cases) one.cases.push_back(run_case.id);
    if (report::is_suite(run)) one.verdicts.push_back(report::suite_summary(run));
    listed.push_back(std::move(one));
  }
  return listed;
}

Result<analysis::DifferenceResult> difference_of(const requests::DiffRequest& request, const fs::path& path) {
  const auto store = STRATA_TRY(store::Store::open_existing(path));
  const auto named = [&](const std::string& which, const char* member) {
    auto run = store.load_run(which);
    if (!run) run.error().facts.where = member;
    return run;
  };
  const auto before = STRATA_TRY(named(request.before, "before"));
  const auto after = STRATA_TRY(named(request.after, "after"));
  if (before.run_id == after.run_id)
    return fail(fmt::format("{} and {} are the same run", request.before, request.after),
                "`./strata list runs` shows all", Exit::usage);
  for (const auto* run : {&before, &after})
    if (report::is_training(*run))
      return fail(fmt::format("{} is a training; diff compares times of single iterations", run->run_id),
                  fmt::format("./strata show {} has its accuracy and its times", run->run_id), Exit::usage);
  auto difference = analysis::difference_of(before, after, request.fail_above);
  if (difference.cases == 0) {
    std::string why;
    for (const auto& left_out : difference.without)
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", left_out.case_id, left_out.reason);
    return fail(fmt::format("runs {} and {} have no case in common: {}", before.run_id, after.run_id, why),
                "compare the same network at the same batch, size, precision, device and threads", Exit::usage);
  }
  return difference;
}

int exit_code_of(const analysis::DifferenceResult& difference) {
  if (difference.beyond) return kRegression;
  if (difference.lost) return static_cast<int>(Exit::failed);
  const bool is_open = difference.open || difference.not_compared || difference.levels.empty();
  return is_open ? kUndecided : static_cast<int>(Exit::ok);
}

Result<Answer> answer_query(const requests::Query& query, const fs::path& path, EventSink& events) {
  if (const auto* data = std::get_if<requests::DataRequest>(&query)) {
    auto told = answer_of_data(*data, events);
    if (!told && told.error().facts.where == "--dataset") told.error().facts.where = "name";
    return Answer{STRATA_TRY(std::move(told))};
  }
  if (const auto* commands = std::get_if<requests::CommandsRequest>(&query)) {
    const auto timed = STRATA_TRY(time_commands(*commands, events));
    return Answer{Json::parse(STRATA_TRY(document::render(report::commands_document(timed), "json", {}, {}))),
                  exit_code_of(timed)};
  }
  if (const auto* diff = std::get_if<requests::DiffRequest>(&query)) {
    const auto difference = STRATA_TRY(difference_of(*diff, path));
    return Answer{analysis::to_json(difference), exit_code_of(difference)};
  }
  if (const auto* runs = std::get_if<requests::RunsRequest>(&query)) {
    Json all = Json::array();
    const auto listed = STRATA_TRY(list_runs(*runs, path));
    for (const auto& one : listed)
      all.push_back({{"run", one.run},
                     {"name", one.name},
                     {"started", one.started},
                     {"state", one.state},
                     {"verdict", one.verdicts},
                     {"cases", one.cases},
                     {"command", one.command}});
    return Answer{std::move(all)};
  }
  const auto store = STRATA_TRY(store::Store::open_existing(path));
  const auto run = STRATA_TRY(store.load_run(std::get<requests::ShowRequest>(query).run));
  auto shown = STRATA_TRY(shown_run(run, store));
  return Answer{std::move(shown.result)};
}

}  // namespace strata::engine
