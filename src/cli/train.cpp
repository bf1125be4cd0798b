// SPDX-License-Identifier: Apache-2.0
// `strata train MODEL --dataset NAME`: whole trainings of all levels that train, on the same images in the same order
// from the same weights.
#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/run_verbs.hpp"
#include "common/interrupt.hpp"
#include "engine/training_forecast.hpp"
#include "report/format.hpp"
#include "report/render_file.hpp"
#include "report/run_documents.hpp"
#include "report/table.hpp"

namespace strata::cli {
using Json = nlohmann::json;
namespace {

Json json_of(const engine::TrainingForecast& f) {
  Json levels = Json::array();
  for (const auto& level : f.levels)
    levels.push_back({{"level", level.level},
                      {"step_s", level.step_s ? Json(*level.step_s) : Json()},
                      {"from", level.source},
                      {"predicted_s", level.step_s ? Json(level.seconds) : Json()}});
  return {{"levels", levels},
          {"without", f.without},
          {"epochs", f.work.epochs},
          {"repeats", f.work.repeats},
          {"train_images", f.work.train},
          {"test_images", f.work.test},
          {"batch", f.work.batch},
          {"steps_an_epoch", f.work.steps()},
          {"scaled", f.scaled.empty() ? Json() : Json(f.scaled)},
          {"predicted_s", f.known ? Json(f.seconds) : Json()},
          {"disk_bytes", f.bytes > 0 ? Json(f.bytes) : Json()}};
}

void print_forecast(const engine::TrainingForecast& f, const std::string& format_name) {
  const auto format = report::format_from(format_name).value_or(report::Format::text);
  if (format == report::Format::json) return answer_json(json_of(f), 1);
  std::vector<report::Cells> rows;
  for (const auto& level : f.levels)
    rows.push_back({level.level, level.step_s ? report::duration(*level.step_s * 1e3) : "?",
                    level.step_s && f.work.steps() > 0 ? fmt::format("{:.1f}", level.seconds / 60) : "?",
                    level.source});
  answer(report::table({"level", report::numbers("step"), report::numbers("minutes"), "from"}, rows, format));
  if (format != report::Format::text) return;
  answer(fmt::format("\n{} of {} step{} of {} images at {} level{}: {}{}\n",
                     f.work.epochs == 1 ? "1 epoch" : fmt::format("{} epochs", f.work.epochs), f.work.steps(),
                     f.work.steps() == 1 ? "" : "s", f.work.batch, f.levels.size(), f.levels.size() == 1 ? "" : "s",
                     f.work.repeats == 1 ? "once" : fmt::format("{} times", f.work.repeats),
                     f.known ? ", " + report::about(f.seconds) : ", of unknown length"));
  answer(f.bytes > 0 ? fmt::format("about {} on disk\n", report::size(f.bytes))
                     : std::string("disk: not known before the network is captured once\n"));
  if (!f.scaled.empty()) answer(f.scaled + "\n");
  if (!f.note.empty()) answer(f.note + "\n");
  for (const auto& why : f.without) answer("without " + why + "\n");
}

// `train --dry-run`: the forecast, once the network takes the images; the exit code.
Result<int> print_training_plan(const RunArguments& a, const engine::TrainingPlan& plan,
                                const engine::Prepared& ready) {
  engine::TrainingForecast forecast;
  {
    ProgressLine line;
    const auto takes = engine::check_network(plan, ready, line);
    if (interrupted()) return interrupt_exit_code();
    if (!takes) return tl::unexpected(takes.error());
    forecast = engine::forecast_training(plan, ready, store::Store::path_of(a.store), line);
  }
  print_forecast(forecast, a.format);
  return 0;
}

}  // namespace

Result<int> run_train(const requests::TrainRequest& request, RunArguments& a) {
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));  // before a cluster is sent anything
  std::optional<engine::OwnShard> own;
  if (const auto code = STRATA_TRY(split_run(request, a, own))) return *code;
  auto plan = engine::plan_training(request, a, own ? own->numbers() : std::vector<int>());
  if (interrupted()) return interrupt_exit_code();
  if (!plan) return tl::unexpected(plan.error());
  const auto show = [&](store::Store& store, const measure::Setting& setting) {
    return show_document(a, store, setting,
                         [&](const store::Run& run) { return report::training_document(run, store); });
  };
  return run_as(*plan, a, engine::training(*plan, a, own),
                {.print_plan = [&](const auto& ready) { return print_training_plan(a, *plan, ready); },
                 .show = show,
                 .kept = "complete epochs are stored",
                 .done = "trained"});
}

}  // namespace strata::cli
