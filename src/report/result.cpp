// SPDX-License-Identifier: Apache-2.0
#include "report/result.hpp"

#include <algorithm>

#include "analysis/accuracy.hpp"
#include "analysis/case_result.hpp"
#include "analysis/judge_stored.hpp"
#include "analysis/slo.hpp"
#include "analysis/warnings.hpp"
#include "common/lookup.hpp"
#include "level/level.hpp"
#include "report/environments.hpp"
#include "report/format.hpp"
#include "report/sentence.hpp"
#include "report/shards.hpp"
#include "report/slo.hpp"
#include "requests/commands.hpp"
#include "stats/half_width.hpp"
#include "store/run_state.hpp"

namespace strata::report {
using analysis::CaseResult;
using analysis::Headline;
using analysis::HeadlineVerdict;
namespace {

std::string reason_short(const store::Row& row) {
  return row.info.reason_short.value_or(first_sentence(row.reason));
}

// The reference that was wanted and has no number.
std::optional<analysis::InsteadOf> instead_of(const store::Case& run_case) {
  const auto& original = run_case.trust.reference_wanted;
  if (original.empty() || original == run_case.reference_level) return std::nullopt;
  for (const auto& row : run_case.rows)
    if (row.name() == original) return analysis::InsteadOf{original, to_string(row.state), reason_short(row)};
  return analysis::InsteadOf{original, "skipped", ""};
}

// The run's command with one thread.
std::string with_one_thread(const store::Run& run) {
  auto request = requests::request_of_run(run.settings);
  if (!request) return run.command;
  requests::common_of(*request).options.thread_counts = {1};
  return requests::command_of(*request, run.settings.kept.store);
}

// What writes the recommended level as files of its own; "" where nothing does.
std::string command_to_take(const store::Run& run, const store::Case& run_case, const std::string& level) {
  const auto& question = run_case.question;
  const auto spec = core::read_spec(lookup::at(run_case.bundle, "spec"), "spec");
  const auto row =
      std::find_if(run_case.rows.begin(), run_case.rows.end(), [&](const auto& r) { return r.name() == level; });
  if (row == run_case.rows.end() || !spec) return "";
  const bool exports =
      question.precision == core::Precision::fp32 && question.mode != core::Mode::train;  // others have no export
  const bool same_artefact = row->variant == "default" || row->variant == level::kHugePages;
  if (exports && same_artefact && row->info.artefact)
    return requests::export_command(*spec, question.model, row->level, named_beside(run, *row));
  if (const auto& program = row->info.generate)
    return requests::generate_command(*spec, question.model, {row->level, program->target, program->options},
                                      named_beside(run, *row).python);
  return "";
}

// What a reader would do next, nothing while the run goes on: end what was cut off, measure where it can be trusted,
// take the winner away, look closer at what is unequal, resolve what is open, or read the report.
std::string next_command(const store::Run& run, const store::Case& run_case, const CaseResult& result) {
  const auto& headline = *result.headline;
  const auto state = store::state_of(run);
  if (state == store::RunState::running) return "";
  if (state == store::RunState::interrupted) return "./strata resume " + run.run_id;
  if (headline.verdict == HeadlineVerdict::not_reliable)
    return result.trust.one_thread_fits ? with_one_thread(run) : run.command;
  if (headline.verdict == HeadlineVerdict::move)
    if (auto command = command_to_take(run, run_case, headline.level); !command.empty()) return command;
  for (const auto& row : result.rows)
    if (row.state == State::unequal && !run.settings.deep && run_case.question.mode != core::Mode::train &&
        run.settings.dynamic.empty())  // --dynamic and --deep exclude each other
      return row.repeat + " --deep";
  for (const auto& row : result.rows)
    if (row.ratio && row.ratio->resolve) return row.ratio->resolve->command;
  return "./strata report " + run.run_id;
}

// Whether restarts are still to come without which levels are not judged.
bool is_preliminary(const store::Run& run, const CaseResult& result) {
  const int planned = run.settings.effort.restarts.value_or(0);
  return store::state_of(run) == store::RunState::running &&
         result.trust.restarts.value_or(0) < std::min(planned, stats::fewest_with_scatter);
}

Headline headline_of(const store::Run& run, const CaseResult& result, bool tuned) {
  const auto judged = tuned ? tuned_headline(result) : headline(result);
  const bool compares = judged.verdict != HeadlineVerdict::no_data && judged.verdict != HeadlineVerdict::not_reliable;
  return compares && is_preliminary(run, result) ? preliminary_headline(result, *run.settings.effort.restarts) : judged;
}

CaseResult result_of_case(const store::Run& run, const store::Case& run_case) {
  const analysis::CaseStatistics statistics(run, run_case);
  auto result = analysis::case_result(run, run_case, statistics);
  for (std::size_t i = 0; i < result.rows.size(); ++i) result.rows[i].reason_short = reason_short(run_case.rows[i]);
  result.reference_instead_of = instead_of(run_case);
  result.headline = headline_of(run, result, statistics.has_tuned());
  result.headline->sentence = ending_words(run) + result.headline->sentence;
  result.ledger = analysis::ledger_of(run, statistics, result.headline->level);
  result.next_command = next_command(run, run_case, result);
  return result;
}

// Each once, however often the run came upon it.
std::vector<analysis::WarningText> warnings_of(const store::Run& run) {
  std::vector<analysis::WarningText> warnings;
  const auto add = [&](const store::Warning& warning) {
    analysis::WarningText text{warning.id, warning.case_key, warning.what, warning.advice};
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(std::move(text));
  };
  for (const auto& warning : run.warnings) add(warning);
  const auto note = analysis::warnings::interrupted_run();
  const bool is_noted = std::any_of(warnings.begin(), warnings.end(), [&](const auto& w) { return w.id == note.id; });
  const bool broke_off = store::state_of(run) == store::RunState::interrupted && !run.settings.budget_spent;
  if (broke_off && !is_noted) add(note);
  return warnings;
}

analysis::RunFacts facts_of(const store::Run& run) {
  const auto& settings = run.settings;
  const auto state = store::state_of(run);
  return {.id = run.run_id,
          .name = run.name,
          .started = run.started,
          .command = run.command,
          .version = run.version,
          .finished = !run.finished.empty(),
          .interrupted = state == store::RunState::interrupted,
          .state = store::to_string(state),
          .resumed = settings.resumed.value_or(0),
          .seed = run.seed,
          .preset = settings.effort.preset,
          .wall_s = settings.wall_s,
          .restarts = settings.effort.restarts,
          .budget_s = settings.effort.budget_s,
          .ci_width = settings.effort.ci_width,
          .aa = settings.aa,
          .deep = settings.deep,
          .tuned = settings.tuned,
          .clients = settings.clients,
          .dynamic = settings.dynamic,
          .slo = settings.slo,
          .eval = settings.eval};
}

}  // namespace

analysis::RunResult result_of(const store::Run& stored) {
  store::Run run = stored;
  analysis::judge_stored(run);
  analysis::RunResult result{.run = facts_of(run),
                             .machine = run.machine,
                             .environments = {run.environments.begin(), run.environments.end()},
                             .warnings = warnings_of(run)};
  for (const auto& run_case : run.cases) result.cases.push_back(result_of_case(run, run_case));
  analysis::add_slo(run, result.cases);
  for (auto& one_case : result.cases)
    if (one_case.slo)
      for (auto& level : one_case.slo->levels)
        level.sentence = slo_sentence(level, one_case.slo->quantile, one_case.slo->limit_ms);
  result.accuracy = analysis::accuracy(run, result.cases);
  return result;
}

}  // namespace strata::report
