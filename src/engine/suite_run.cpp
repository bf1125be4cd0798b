// SPDX-License-Identifier: Apache-2.0
#include "engine/suite_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "common/interrupt.hpp"
#include "common/places.hpp"
#include "engine/case_plan.hpp"
#include "engine/training_forecast.hpp"
#include "plan/scale.hpp"
#include "probe/gpu.hpp"
#include "probe/machine.hpp"
#include "report/format.hpp"
#include "requests/codec.hpp"
#include "store/run_state.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

std::optional<Error> lacking_device(const std::string& device) {
  if (device != "cuda") return std::nullopt;
  const auto gpus = probe::gpus();
  if (gpus.available) return std::nullopt;
  // it is no fault of a suite that it asks for more than one machine has
  return Error{"no device cuda: " + gpus.why_not, "", Exit::ok};
}

void show_training(PlannedEntry& planned, const TrainingForecast& prediction) {
  std::vector<std::string> names;
  for (const auto& level : prediction.levels) names.push_back(level.level);
  planned.levels = joined(names);
  planned.amount =
      fmt::format("{} x {} x {}", prediction.work.repeats, prediction.work.epochs, prediction.work.steps());
  planned.basis = prediction.source() + (prediction.note.empty() ? "" : "; " + prediction.note);
  if (!prediction.scaled.empty()) planned.basis = prediction.scaled + "; " + planned.basis;
  if (prediction.known) planned.predicted_s = prediction.seconds;
  if (prediction.bytes > 0) planned.bytes = prediction.bytes;
}

void show_cases(PlannedEntry& planned, const CasePlan& plan) {
  std::vector<std::string> levels;
  for (const auto& run_case : plan.cases)
    for (const auto& name : run_case.levels)
      if (std::find(levels.begin(), levels.end(), name) == levels.end()) levels.push_back(name);
  const auto cases = plan.cases.size();
  planned.levels = joined(levels);
  planned.amount = fmt::format("{} case{}", cases, cases == 1 ? "" : "s");
  if (!plan.notes.empty()) planned.basis = plan.notes.back();
  planned.predicted_s = plan.seconds;
  if (plan.bytes > 0) planned.bytes = plan.bytes * static_cast<double>(cases);
}

// What is likely to come of its request. Error: it cannot be asked, or not here.
Result<void> plan_request(PlannedEntry& planned, const requests::Request& request, const fs::path& store,
                          EventSink& events) {
  RunContext context;
  context.dry_run = true;
  if (const auto* train = std::get_if<requests::TrainRequest>(&request)) {
    const auto plan = STRATA_TRY(plan_training(*train, context));
    auto ready = STRATA_TRY(prepare(plan, context, events));
    drop_untrained(ready);
    show_training(planned, forecast_training(plan, ready, store, events));
    return {};
  }
  const auto* sweep = std::get_if<requests::SweepRequest>(&request);
  const auto ready = STRATA_TRY(prepare(sweep ? *sweep : std::get<requests::CompareRequest>(request), context, events));
  show_cases(planned, sweep ? plan_sweep(ready, *sweep, store, nullptr) : plan_comparison(ready, store));
  return {};
}

Result<PlannedEntry> plan_entry(const SuiteEntry& entry, const fs::path& store, EventSink& events) {
  PlannedEntry planned{.entry = entry};
  planned.unavailable = lacking_device(entry.device);
  if (planned.unavailable) return planned;
  const auto done = plan_request(planned, entry.request, store, events);
  if (!done && done.error().exit == Exit::usage) return tl::unexpected(done.error());
  if (!done) planned.unavailable = done.error();
  return planned;
}

Result<void> keep_entries_of(const std::string& model, std::vector<SuiteEntry>& entries, const suite::Suite& suite) {
  std::vector<std::string> models;
  for (const auto& entry : entries) models.push_back(requests::common_of(entry.request).options.model);
  std::erase_if(entries, [&](const SuiteEntry& entry) {
    return requests::common_of(entry.request).options.model.find(model) == std::string::npos;
  });
  if (!entries.empty()) return {};
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return fail(fmt::format("--model: no entry of {} has a model with '{}' in its name; its models: {}",
                          suite.path.string(), model, fmt::join(models, ", ")),
              "a part of a name chooses all that have it", Exit::usage, {.where = "--model", .got = model});
}

// Whether a run of a suite goes through these entries.
bool has_entries(const store::SuiteFacts& run, const std::vector<SuiteEntry>& entries) {
  return std::equal(run.entries.begin(), run.entries.end(), entries.begin(), entries.end(),
                    [](const auto& stored, const auto& entry) { return stored.command == entry.command; });
}

}  // namespace

store::Run describe_suite(const suite::Suite& suite, const std::vector<SuiteEntry>& entries,
                          const requests::SuiteRequest& request, const std::string& command,
                          const std::string& format) {
  store::Run run;
  run.run_id = new_run_id();
  run.name = request.name;
  run.started = utc_now();
  run.command = command;
  run.version = STRATA_VERSION;
  run.machine = probe::machine();
  std::error_code ignored;
  run.settings = {.verb = "run",
                  .request = requests::to_json(request),
                  .folder = fs::current_path(ignored).string(),
                  .kept = {.format = format},
                  .suite_run = {.title = suite.title,
                                .about = suite.about,
                                .source = suite.source,
                                .file = fs::absolute(suite.path, ignored).string(),
                                .hash = suite.hash,
                                .scale = request.scale}};
  for (const auto& entry : entries)
    run.settings.suite_run.entries.push_back({.command = entry.command, .label = entry.label});
  return run;
}

Result<ReadSuite> read_suite(const requests::SuiteRequest& request, const std::string& store) {
  if (!request.scale.empty()) STRATA_TRY(plan::parse_scale(request.scale));
  ReadSuite ready{.store = store::Store::path_of(store)};
  const auto path = STRATA_TRY(suite::find(request.suite, installation().root));
  ready.suite = STRATA_TRY(suite::read(path));
  ready.entries = STRATA_TRY(entries_of(
      ready.suite, {.scale = request.scale, .data_dir = request.data_dir, .python = request.python, .store = store}));
  if (!request.model.empty()) STRATA_TRY(keep_entries_of(request.model, ready.entries, ready.suite));
  return ready;
}

Result<std::vector<PlannedEntry>> plan_entries(const suite::Suite& suite, const std::vector<SuiteEntry>& entries,
                                               const fs::path& store, EventSink& events) {
  std::vector<PlannedEntry> all;
  for (const auto& entry : entries) {
    if (interrupted()) break;
    auto planned = plan_entry(entry, store, events);
    if (!planned)
      return tl::unexpected(suite::at_line(suite.path, entry.line, planned.error().what, planned.error().hint));
    all.push_back(std::move(*planned));
  }
  return all;
}

Result<std::optional<store::Run>> SuiteRun::unfinished(const fs::path& path, const std::string& hash,
                                                       const std::string& scale,
                                                       const std::vector<SuiteEntry>& entries) {
  if (!there_is(path)) return std::nullopt;
  const auto store = store::Store::open_existing(path);
  if (!store) return tl::unexpected(store.error());
  auto runs = STRATA_TRY(store->list_runs(0));
  for (auto& run : runs) {
    const auto& suite = run.settings.suite_run;
    if (run.settings.verb != "run" || suite.hash != hash || suite.scale != scale || !has_entries(suite, entries))
      continue;
    if (run.imported || store::state_of(run) == store::RunState::running) continue;
    return std::optional(std::move(run));
  }
  return std::nullopt;
}

void SuiteRun::predict(const std::vector<PlannedEntry>& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!is_done(i) && entries[i].predicted_s && !entry(i).predicted_s) entry(i).predicted_s = entries[i].predicted_s;
}

Result<void> SuiteRun::begin(bool resumed) {
  run_.process = store::this_process();
  auto store = STRATA_TRY(store::Store::open(store_));
  return resumed ? store.continue_run(run_) : store.begin_run(run_);
}

Result<void> SuiteRun::write() {
  auto store = STRATA_TRY(store::Store::open(store_));
  return store.finish_run(run_);
}

bool SuiteRun::is_done(std::size_t place) const {
  const auto& entries = run_.settings.suite_run.entries;
  if (place >= entries.size()) return false;
  const auto& entry = entries[place];
  return entry.state == "done" || (entry.state == "failed" && !entry.run.empty());
}

Result<std::optional<store::Run>> SuiteRun::run_of(std::size_t place) const {
  const auto store = STRATA_TRY(store::Store::open_existing(store_));
  const auto runs = STRATA_TRY(store.list_runs(0));
  for (const auto& run : runs) {
    const auto& suite = run.settings.suite;
    if (!suite || suite->run != run_.run_id || suite->entry != static_cast<int>(place + 1)) continue;
    auto whole = STRATA_TRY(store.load_id(run.run_id));
    if (!whole.cases.empty()) return std::optional(std::move(whole));
  }
  return std::nullopt;
}

SuiteRun::Done SuiteRun::run_entry(const PlannedEntry& planned, std::size_t place, const RequestRunner& runner) {
  if (planned.unavailable)
    return {"unavailable", planned.unavailable->what, static_cast<int>(planned.unavailable->exit)};
  RunContext context{
      .command = planned.entry.command,
      .resumed = {},
      .suite = store::OfSuite{
          .run = run_.run_id, .title = run_.settings.suite_run.title, .entry = static_cast<int>(place + 1)}};
  auto before = run_of(place);
  if (!before) return {"failed", before.error().what, 1};
  // it came to its end while nobody wrote that down, or was gone on with by itself
  if (*before && store::state_of(**before) == store::RunState::finished) return {"done", "", 0};
  if (*before) context.resumed = std::move(**before);
  Result<int> code = 0;
  try {
    code = runner(planned.entry.request, std::move(context));
  } catch (const std::bad_alloc&) {
    code = fail("this machine has no memory left");
  } catch (const std::exception& error) {  // one entry's trouble is not the next one's
    code = fail(fmt::format("unforeseen: {}", error.what()));
  }
  if (interrupted()) return {"interrupted", "", interrupt_exit_code()};
  if (!code) {
    const bool lacks = code.error().exit == Exit::environment;
    return {lacks ? "unavailable" : "failed", code.error().what, lacks ? 3 : 1};
  }
  if (*code == static_cast<int>(Exit::ok)) return {"done", "", 0};
  if (*code == static_cast<int>(Exit::environment)) return {"done", "a level that was named cannot run here", *code};
  return {"failed", "a level failed, crashed, timed out, was unequal or unproven", 1};
}

Result<void> SuiteRun::go_on(const std::vector<PlannedEntry>& entries, EventSink& events, const RequestRunner& runner) {
  for (std::size_t i = 0; i < entries.size() && !interrupted(); ++i) {
    if (is_done(i)) continue;
    double left = 0;
    for (std::size_t k = i; k < entries.size(); ++k)
      if (!is_done(k)) left += entries[k].predicted_s.value_or(0);
    events.note(fmt::format("entry {} of {}{}: {}", i + 1, entries.size(),
                            left > 0 ? ", " + report::about(left) + " left" : "", entry(i).command));
    const auto start = std::chrono::steady_clock::now();
    const auto done = run_entry(entries[i], i, runner);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    auto& recorded = entry(i);
    recorded.state = done.state;
    recorded.reason = done.reason;
    recorded.exit_code = done.code;
    if (done.state != "unavailable") recorded.took_s = recorded.took_s.value_or(0) + took;
    if (const auto run = run_of(i); run && *run) recorded.run = (*run)->run_id;
    if (!done.reason.empty()) events.note(fmt::format("entry {}: {}: {}", i + 1, done.state, done.reason));
    STRATA_TRY(write());
  }
  return {};
}

Result<void> SuiteRun::run(const std::vector<PlannedEntry>& entries, bool resumed, EventSink& events,
                           const RequestRunner& runner) {
  predict(entries);
  STRATA_TRY(begin(resumed));
  const auto gone = go_on(entries, events, runner);
  const auto ended = end();
  STRATA_TRY(gone);
  return ended;
}

Result<void> SuiteRun::end() {
  run_.finished = utc_now();
  run_.interrupted = interrupted();
  return write();
}

int SuiteRun::exit_code() const {
  if (interrupted()) return interrupt_exit_code();
  bool failed = false, lacks = false, any = false;
  for (const auto& entry : run_.settings.suite_run.entries) {
    failed = failed || entry.state == "failed";
    lacks = lacks || entry.exit_code == static_cast<int>(Exit::environment);
    any = any || entry.state == "done";
  }
  return static_cast<int>(failed ? Exit::failed : lacks || !any ? Exit::environment : Exit::ok);
}

}  // namespace strata::engine
