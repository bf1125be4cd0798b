// SPDX-License-Identifier: Apache-2.0
#include "engine/case_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "engine/run_case.hpp"
#include "engine/sweep_forecast.hpp"
#include "measure/passes/pass.hpp"
#include "plan/bundle.hpp"
#include "plan/clients.hpp"
#include "plan/model_file.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

// Where nothing is stored of a network, roughly what small ones take on two cores.
constexpr double kCaptureS = 15, kStartS = 1.5;
constexpr int kStartsBeside = 2;  // of a level, to prove it and to look at its memory and its start
constexpr int kLookedAt = 50;     // runs

// What is done with the cases, in this order.
std::vector<std::string> passes_of(const Prepared& ready, const std::vector<core::Case>& questions) {
  std::vector<std::string> names{"capture"};
  for (const auto& pass : measure::passes()) {
    const auto applies = [&](const auto& question) { return pass.applies(ready.setting, question); };
    if (std::none_of(questions.begin(), questions.end(), applies)) continue;
    for (auto& name : pass.name(ready.setting)) names.push_back(std::move(name));
  }
  return names;
}

// Seconds of a case by what was asked, where nothing is stored.
double assumed_s(const Prepared& ready) {
  const auto& [options, effort] = std::tie(ready.setting.options, ready.setting.effort);
  const auto levels = static_cast<double>(ready.levels.size());
  double seconds = kCaptureS + effort.budget_s + levels * (effort.restarts + kStartsBeside) * kStartS;
  if (options.tuned) seconds += levels * effort.tune_s;
  if (const auto clients = plan::parse_clients(options.clients); clients && !options.clients.empty())
    seconds += levels * effort.serve_s * static_cast<double>(clients->size());
  if (!options.dynamic.empty()) seconds += levels * std::min(effort.tune_s, effort.budget_s);
  return seconds;
}

// What a stored run of the same network, mode and effort took a case.
struct Seen {
  std::string run;
  double seconds = 0;
};

std::optional<Seen> seen(const Prepared& ready, const core::Case& question, const fs::path& path) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return std::nullopt;
  const auto store = store::Store::open_existing(path);
  if (!store) return std::nullopt;  // a comparison says what is wrong with it
  const auto runs = store->list_runs(kLookedAt);
  const auto prefix = fmt::format("{}/{}/", question.model, name_of(question.mode));
  for (const auto& run : runs.value_or(std::vector<store::Run>())) {
    const auto wall = run.settings.wall_s;
    const auto& effort = ready.setting.effort;
    if (!wall || run.interrupted || run.settings.effort.restarts != effort.restarts ||
        run.settings.effort.budget_s != effort.budget_s)
      continue;
    const auto cases = store->run_cases(run.run_id).value_or(std::vector<store::ListedCase>());
    const bool same = !cases.empty() && std::all_of(cases.begin(), cases.end(), [&](const auto& run_case) {
      return run_case.id.starts_with(prefix);
    });
    if (same) return Seen{run.run_id, *wall / static_cast<double>(cases.size())};
  }
  return std::nullopt;
}

// What a case of a comparison takes.
double compared_s(CasePlan& plan, const Prepared& ready, const core::Case& question, const fs::path& store) {
  const auto before = seen(ready, question, store);
  const double seconds = before ? before->seconds : assumed_s(ready);
  plan.note(before ? fmt::format("{} {}: {:.1f} min a case, as run {} took", question.model, name_of(question.mode),
                                 seconds / 60, before->run)
                   : fmt::format("{} {}: {:.1f} min a case, assumed: no run of it with this effort is stored",
                                 question.model, name_of(question.mode), seconds / 60));
  return seconds;
}

// `seconds`: what it takes, of what is known before it is captured.
template <class Seconds>
void add_case(CasePlan& plan, const Prepared& ready, const core::CaseSpec& spec, const Seconds& seconds) {
  const auto bundle = provisional_bundle(spec);
  auto who = participants_of(ready, bundle);
  for (const auto& why : who.without) plan.note("without " + why);
  plan.cases.push_back({.spec = spec,
                        .question = bundle.question,
                        .levels = std::move(who.names),
                        .without = std::move(who.without),
                        .seconds = seconds(bundle.question),
                        .bytes = {}});
  plan.seconds += plan.cases.back().seconds;
}

void complete(CasePlan& plan, const Prepared& ready) {
  std::vector<core::Case> questions;
  for (const auto& planned : plan.cases) questions.push_back(planned.question);
  plan.passes = passes_of(ready, questions);
  plan.bytes = captured_bytes(ready.setting.place.cache, questions.front().model);
}

void capture_smallest(CasePlan& plan, SweepForecast& forecast, const Prepared& ready, const plan::Grid& grid,
                      bool full_proof, EventSink& events) {
  const auto* spec = forecast.knows_work() ? nullptr : forecast.smallest();
  if (spec == nullptr) return;
  if (const auto notice = plan::notice_of(ready.setting.options.model); !notice.empty()) events.note(notice);
  if (const auto captured = capture_case(ready, spec_of_point(*spec, grid, full_proof), events))
    forecast.learn(captured->bundle.question, captured->bundle.info);
  else
    plan.note(fmt::format("{}: {}", words(plan::point_of(*spec)), captured.error().what));
}

}  // namespace

void CasePlan::note(const std::string& text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

CasePlan plan_comparison(const Prepared& ready, const fs::path& store) {
  CasePlan plan;
  for (const auto& spec : ready.specs)
    add_case(plan, ready, spec, [&](const core::Case& question) { return compared_s(plan, ready, question, store); });
  complete(plan, ready);
  return plan;
}

CasePlan plan_sweep(const Prepared& ready, const SweepRequest& request, const fs::path& store, EventSink* events) {
  CasePlan plan;
  const plan::Grid grid(ready.specs);
  SweepForecast forecast(request, ready, grid, store);
  if (events != nullptr) capture_smallest(plan, forecast, ready, grid, request.full_proof, *events);
  const auto points = forecast.points(ready.specs);
  for (std::size_t i = 0; i < points.size(); ++i) {
    add_case(plan, ready, ready.specs[i], [&](const core::Case&) { return points[i].seconds; });
    plan.cases.back().bytes = points[i].bytes;
  }
  plan.note("minutes and memory: " + forecast.source());
  if (const auto& budget_s = ready.setting.options.budget_s) {
    if (plan.seconds > 0.99 * *budget_s)
      plan.note(fmt::format("it ends after its budget of {:.0f} min, whatever points it has reached by then",
                            *budget_s / 60));
    plan.seconds = std::min(plan.seconds, *budget_s);
  }
  complete(plan, ready);
  return plan;
}

}  // namespace strata::engine
