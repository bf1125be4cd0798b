// SPDX-License-Identifier: Apache-2.0
// `strata compare --dry-run`: the plan of a comparison and what it is likely to take, from runs of the same network if
// the store has one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "cli/compare.hpp"
#include "cli/console.hpp"
#include "cli/foreseen.hpp"
#include "cli/run_case.hpp"
#include "cli/sweep_forecast.hpp"
#include "common/interrupt.hpp"
#include "measure/passes/pass.hpp"
#include "plan/bundle.hpp"
#include "plan/clients.hpp"
#include "plan/jobs.hpp"
#include "report/access.hpp"
#include "report/format.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// Where nothing is stored of a network, roughly what small ones take on two cores.
constexpr double kCaptureS = 15, kStartS = 1.5;
constexpr int kStartsBeside = 2;  // of a level, to prove it and to look at its memory and its start
constexpr int kLookedAt = 50;     // runs

// "8", "64x96": an axis as typed; "own": what the model brings.
std::string batch_of(const Json& spec) {
  const auto batch = report::number(spec, "batch");
  return batch ? fmt::format("{:.0f}", *batch) : "own";
}

std::string form_of(const Json& spec) {
  const auto& size = report::at(spec, "size");
  if (size.is_array() && size.size() == 2) return fmt::format("{}x{}", size[0].dump(), size[1].dump());
  return report::list(spec, "inputs").empty() && report::text(spec, "input_file").empty() ? "own" : "as given";
}

// What is done with the cases, in this order.
std::vector<std::string> passes_of(const Prepared& ready, const std::vector<core::Case>& questions) {
  std::vector<std::string> names{"capture"};
  for (const auto& pass : measure::passes()) {
    const auto applies = [&](const auto& question) { return pass->applies(ready.setting, question); };
    if (std::none_of(questions.begin(), questions.end(), applies)) continue;
    for (auto& name : pass->name(ready.setting)) names.push_back(std::move(name));
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
    const auto wall = report::number(run.settings, "wall_s");
    const auto& effort = ready.setting.effort;
    if (!wall || run.interrupted || report::number(run.settings, "restarts") != effort.restarts ||
        report::number(run.settings, "budget_s") != effort.budget_s)
      continue;
    const auto cases = store->run_cases(run.run_id).value_or(std::vector<store::ListedCase>());
    const bool same = !cases.empty() && std::all_of(cases.begin(), cases.end(), [&](const auto& run_case) {
      return run_case.id.starts_with(prefix);
    });
    if (same) return Seen{run.run_id, *wall / static_cast<double>(cases.size())};
  }
  return std::nullopt;
}

// A plan as it is printed.
struct Plan {
  std::vector<report::Cells> rows;
  std::vector<std::string> notes;  // each once
  std::vector<core::Case> questions;
  double seconds = 0;
  double bytes = 0;  // on disk, of a case that is not captured yet; 0: not known
  Json points = Json::array();

  void note(const std::string& text) {
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
  }
};

// What a case of a comparison takes.
double compared_s(Plan& plan, const Prepared& ready, const core::Case& question, const fs::path& store) {
  const auto before = seen(ready, question, store);
  const double seconds = before ? before->seconds : assumed_s(ready);
  plan.note(before ? fmt::format("{} {}: {:.1f} min a case, as run {} took", question.model, name_of(question.mode),
                                 seconds / 60, before->run)
                   : fmt::format("{} {}: {:.1f} min a case, assumed: no run of it with this effort is stored",
                                 question.model, name_of(question.mode), seconds / 60));
  return seconds;
}

// `point`: of a sweep, what was foreseen of it.
void add_case(Plan& plan, const Prepared& ready, const Json& spec, const fs::path& store, const PointForecast* point) {
  const auto bundle = foreseen(spec);
  const auto& question = bundle.question;
  const auto who = participants_of(ready, bundle);
  for (const auto& why : who.without) plan.note("without " + why);
  const double seconds = point ? point->seconds : compared_s(plan, ready, question, store);
  plan.seconds += seconds;
  report::Cells cells{question.model,
                      std::string(name_of(question.mode)),
                      batch_of(spec),
                      form_of(spec),
                      std::string(name_of(question.precision)),
                      std::string(name_of(question.device)),
                      std::to_string(question.threads),
                      fmt::format("{}", fmt::join(who.names, ","))};
  if (point) {
    cells.push_back(fmt::format("{:.1f}", seconds / 60));
    cells.push_back(point->bytes ? report::size(*point->bytes) : "?");
  }
  plan.rows.push_back(cells);
  plan.points.push_back({{"model", cells[0]},
                         {"mode", cells[1]},
                         {"batch", report::at(spec, "batch")},
                         {"size", report::at(spec, "size")},
                         {"precision", cells[4]},
                         {"device", cells[5]},
                         {"threads", question.threads},
                         {"levels", who.names},
                         {"without", who.without},
                         {"predicted_s", seconds}});
  if (point) plan.points.back()["predicted_bytes"] = point->bytes ? Json(*point->bytes) : Json();
  plan.questions.push_back(question);
}

void print(const Plan& plan, const std::vector<std::string>& passes, report::Format format) {
  if (format == report::Format::json) {
    answer(Json{{"points", plan.points},
                {"passes", passes},
                {"predicted_s", plan.seconds},
                {"disk_bytes_a_case", plan.bytes > 0 ? Json(plan.bytes) : Json()}}
               .dump(1) +
           "\n");
    return;
  }
  report::Cells head{"model", "mode", "batch", "size", "precision", "device", "threads", "levels"};
  if (!plan.rows.empty() && plan.rows.front().size() > head.size()) head.insert(head.end(), {"minutes", "memory"});
  answer(report::table(head, plan.rows, format));
  if (format != report::Format::text) return;
  answer(fmt::format("\n{} case{}, about {:.0f} min; each: {}\n", plan.rows.size(), plan.rows.size() == 1 ? "" : "s",
                     std::max(1.0, plan.seconds / 60), fmt::join(passes, ", ")));
  answer(plan.bytes > 0
             ? fmt::format("about {} on disk for each case that is not captured yet\n", report::size(plan.bytes))
             : std::string("disk: not known before the network is captured once\n"));
  for (const auto& text : plan.notes) answer(text + "\n");
}

// `captures`: a network of which no case was captured yet is captured once, at the sweep's smallest corner, so that its
// operations are known. With where the numbers come from.
std::pair<std::vector<PointForecast>, std::string> foreseen_points(Plan& plan, const Prepared& ready,
                                                                   const CompareArguments& a, const fs::path& store,
                                                                   bool captures) {
  const plan::Grid grid(ready.specs);
  SweepForecast forecast(a, ready, grid, store);
  if (const auto* spec = captures && !forecast.knows_work() ? forecast.smallest() : nullptr) {
    warn_of_model_file(a.options.model);
    ProgressLine line;
    if (const auto captured = capture_case(ready, spec_of_point(*spec, grid, a.full_proof), line))
      forecast.learn(captured->bundle.question, captured->bundle.info);
    else
      plan.note(fmt::format("{}: {}", point_words(*spec), captured.error().what));
  }
  return {forecast.points(ready.specs), "minutes and memory: " + forecast.source()};
}

Plan plan_of_cases(const Prepared& ready, const CompareArguments& a, bool captures) {
  const auto path = a.store.empty() ? store::Store::default_path() : fs::path(a.store);
  Plan plan;
  std::vector<PointForecast> points;
  std::string source;
  if (a.whole_budget) std::tie(points, source) = foreseen_points(plan, ready, a, path, captures);
  for (std::size_t i = 0; i < ready.specs.size(); ++i)
    add_case(plan, ready, ready.specs[i], path, a.whole_budget ? &points[i] : nullptr);
  if (!source.empty()) plan.note(source);
  if (const auto& budget_s = ready.setting.options.budget_s; a.whole_budget && budget_s) {
    if (plan.seconds > 0.99 * *budget_s)
      plan.note(fmt::format("it ends after its budget of {:.0f} min, whatever points it has reached by then",
                            *budget_s / 60));
    plan.seconds = std::min(plan.seconds, *budget_s);
  }
  plan.bytes = captured_bytes(ready.setting.place.cache, plan.questions.front().model);
  return plan;
}

}  // namespace

PlanSummary summarise_plan(const Prepared& ready, const CompareArguments& a) {
  const auto plan = plan_of_cases(ready, a, false);
  PlanSummary summary{
      .cases = plan.rows.size(), .seconds = plan.seconds, .bytes = plan.bytes * static_cast<double>(plan.rows.size())};
  for (const auto& point : plan.points)
    for (const auto& level : report::list(point, "levels"))
      if (const auto name = level.get<std::string>();
          std::find(summary.levels.begin(), summary.levels.end(), name) == summary.levels.end())
        summary.levels.push_back(name);
  if (!plan.notes.empty()) summary.basis = plan.notes.back();
  return summary;
}

Result<int> print_plan(const Prepared& ready, const CompareArguments& a) {
  {
    ProgressLine line;
    const auto checked = check_cases(ready, a.whole_budget, line);
    if (!checked && !interrupted()) return tl::unexpected(checked.error());
  }
  if (interrupted()) return interrupt_exit_code();
  const auto plan = plan_of_cases(ready, a, true);
  if (interrupted()) return interrupt_exit_code();
  print(plan, passes_of(ready, plan.questions), report::format_from(a.format).value_or(report::Format::text));
  return 0;
}

}  // namespace strata::cli
