// SPDX-License-Identifier: Apache-2.0
// `strata compare --dry-run`: the plan of a comparison or a sweep as it is printed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/console.hpp"
#include "cli/run_verbs.hpp"
#include "common/interrupt.hpp"
#include "engine/run_case.hpp"
#include "report/format.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// "8", "64x96": an axis as typed; "own": what the model brings.
std::string batch_of(const core::CaseSpec& spec) {
  return spec.batch ? std::to_string(*spec.batch) : "own";
}

std::string form_of(const core::CaseSpec& spec) {
  if (spec.size) return fmt::format("{}x{}", spec.size->first, spec.size->second);
  return spec.inputs.empty() && spec.input_file.empty() ? "own" : "as given";
}

report::Cells cells_of(const engine::PlannedCase& planned, bool of_sweep) {
  const auto& question = planned.question;
  report::Cells cells{question.model,
                      std::string(name_of(question.mode)),
                      batch_of(planned.spec),
                      form_of(planned.spec),
                      std::string(name_of(question.precision)),
                      std::string(name_of(question.device)),
                      std::to_string(question.threads),
                      fmt::format("{}", fmt::join(planned.levels, ","))};
  if (of_sweep) {
    cells.push_back(fmt::format("{:.1f}", planned.seconds / 60));
    cells.push_back(planned.bytes ? report::size(*planned.bytes) : "?");
  }
  return cells;
}

Json json_of(const engine::PlannedCase& planned, bool of_sweep) {
  const auto& question = planned.question;
  const auto spec = to_json(planned.spec);
  Json point{{"model", question.model},
             {"mode", name_of(question.mode)},
             {"batch", spec.at("batch")},
             {"size", spec.at("size")},
             {"precision", name_of(question.precision)},
             {"device", name_of(question.device)},
             {"threads", question.threads},
             {"levels", planned.levels},
             {"without", planned.without},
             {"predicted_s", planned.seconds}};
  if (of_sweep) point["predicted_bytes"] = planned.bytes ? Json(*planned.bytes) : Json();
  return point;
}

void print(const engine::CasePlan& plan, bool of_sweep, report::Format format) {
  if (format == report::Format::json) {
    Json points = Json::array();
    for (const auto& planned : plan.cases) points.push_back(json_of(planned, of_sweep));
    return answer_json({{"points", points},
                        {"passes", plan.passes},
                        {"predicted_s", plan.seconds},
                        {"disk_bytes_a_case", plan.bytes > 0 ? Json(plan.bytes) : Json()}},
                       1);
  }
  using report::numbers;
  std::vector<report::TextColumn> head{"model",     "mode",   numbers("batch"),   "size",
                                       "precision", "device", numbers("threads"), "levels"};
  if (of_sweep) head.insert(head.end(), {numbers("minutes"), numbers("memory")});
  std::vector<report::Cells> rows;
  for (const auto& planned : plan.cases) rows.push_back(cells_of(planned, of_sweep));
  answer(report::table(head, rows, format));
  if (format != report::Format::text) return;
  answer(fmt::format("\n{} case{}, about {:.0f} min; each: {}\n", rows.size(), rows.size() == 1 ? "" : "s",
                     std::max(1.0, plan.seconds / 60), fmt::join(plan.passes, ", ")));
  answer(plan.bytes > 0
             ? fmt::format("about {} on disk for each case that is not captured yet\n", report::size(plan.bytes))
             : std::string("disk: not known before the network is captured once\n"));
  for (const auto& text : plan.notes) answer(text + "\n");
}

}  // namespace

Result<int> print_plan(const engine::Prepared& ready, const RunArguments& a, bool of_sweep,
                       const std::function<engine::CasePlan(engine::EventSink&)>& plan_cases) {
  engine::CasePlan plan;
  {
    ProgressLine line;
    const auto checked = engine::check_cases(ready, of_sweep, line);
    if (!checked && !interrupted()) return tl::unexpected(checked.error());
    if (!interrupted()) plan = plan_cases(line);
  }
  if (interrupted()) return interrupt_exit_code();
  print(plan, of_sweep, report::format_from(a.format).value_or(report::Format::text));
  return 0;
}

}  // namespace strata::cli
