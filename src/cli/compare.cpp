// SPDX-License-Identifier: Apache-2.0
// `strata compare MODEL`: cases one after the other, then the first screen and the report.
#include "report/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/console.hpp"
#include "cli/run_verbs.hpp"
#include "common/interrupt.hpp"
#include "report/render_file.hpp"
#include "report/result.hpp"

namespace strata::cli {
namespace {

// Beside the store, or where -o says.
Result<void> show_page(const RunArguments& a, const store::Store& store, const measure::Setting& setting,
                       const document::Document& document) {
  if (!a.output.empty()) return write_page(document, setting.place, a.output);
  write_stored_page(document, setting.place, store.path(), setting.run_id);
  return {};
}

// The result in the wanted form on standard output; for a person also the report's place.
Result<void> show_result(const RunArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto result = report::result_of(STRATA_TRY(store.load_run(setting.run_id)));
  engine::keep_verdicts(store, setting.run_id, engine::verdicts_of(result));
  if (!a.quiet) {
    std::optional<document::Document> operations;  // of a run without any profile the result says why
    if (a.operations)
      if (auto shown = report::operations_document(result, *a.operations)) operations = *std::move(shown);
    STRATA_TRY(operations ? print_document(*operations, a.format) : print_result(result, a.format));
  }
  return show_page(a, store, setting, report::compare_document({result}));
}

// The case of the restart alone; a store that cannot be read says so at the end.
ProgressLine::SoFar first_screen_of(store::Store& store) {
  return [&store](const engine::EndedRestart& restart, const report::TerminalStyle& style) {
    auto run = store.load_run(restart.run_id);
    if (!run) return std::string();
    run->goes_on = true;
    auto result = report::result_of(*run);
    std::erase_if(result.cases, [&](const auto& one_case) { return one_case.key != restart.case_key; });
    return report::terminal(result, style);
  };
}

// How right the forecast was that a run was begun with.
void say_of_forecast(const store::Store& store, const std::string& run_id) {
  const auto run = store.load_case(run_id, "");
  if (!run) return;
  const auto predicted = run->settings.predicted_s, took = run->settings.wall_s;
  if (!predicted || !took) return;
  const double off = 100 * (*predicted / std::max(*took, 1e-3) - 1);
  tell(fmt::format("took {:.1f} min, predicted {:.1f} min ({:.0f}% too {})\n", *took / 60, *predicted / 60,
                   std::abs(off), off < 0 ? "short" : "long"));
}

}  // namespace

Result<void> show_document(const RunArguments& a, store::Store& store, const measure::Setting& setting,
                           const MakeDocument& make) {
  const auto run = STRATA_TRY(store.load_run(setting.run_id));
  const auto document = STRATA_TRY(make(run));
  engine::keep_verdicts(store, setting.run_id, engine::verdicts_of(run, document.summary));
  if (!a.quiet) STRATA_TRY(print_document(document, a.format));
  return show_page(a, store, setting, document);
}

Result<int> run_as(const requests::CompareRequest& request, const RunArguments& a, engine::RunKind kind,
                   const RunView& view) {
  STRATA_TRY(format_option(a.format));
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  const auto path = store::Store::path_of(a.store);
  if (!a.resumed) kind.kept = kept_of(a);
  ProgressLine line(a.quiet);
  auto ready = engine::prepare_run(request, a, path, kind, line);
  if (interrupted()) return interrupt_exit_code();
  if (!ready) return tl::unexpected(ready.error());
  if (a.dry_run) return view.print_plan(*ready);
  auto store = STRATA_TRY(store::Store::open(path));
  if (view.so_far && a.format == "text") line.show_so_far(view.so_far(store));
  const auto ended = STRATA_TRY(engine::run_prepared(*ready, request, a, store, kind, line));
  line.clear();
  // What was measured before an error is shown all the same.
  const int shown = ended.has_case ? code_of(view.show(store, ready->setting)) : 0;
  if (interrupted())
    tell(ended.has_case
             ? fmt::format("interrupted: {}; ./strata resume {} continues\n", view.kept, ready->setting.run_id)
             : fmt::format("interrupted: nothing was {}, and nothing is stored\n", view.done));
  if (interrupted()) return interrupt_exit_code();
  if (ended.failed) return tl::unexpected(*ended.failed);
  const int code = shown != 0 ? shown : ended.exit_code();
  if (code == 0) say_of_forecast(store, ready->setting.run_id);
  return code;
}

Result<int> run_compare(const requests::CompareRequest& request, RunArguments& a) {
  const auto path = store::Store::path_of(a.store);
  return run_as(request, a, engine::comparison(request),
                {.print_plan =
                     [&](const auto& ready) {
                       return print_plan(ready, a, false, [&](auto&) { return engine::plan_comparison(ready, path); });
                     },
                 .show = [&](auto& store, const auto& setting) { return show_result(a, store, setting); },
                 .so_far = first_screen_of});
}

}  // namespace strata::cli
