// SPDX-License-Identifier: Apache-2.0
// `strata compare MODEL`: cases one after the other, then the first screen and the report.
#include "report/compare.hpp"

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/document.hpp"
#include "cli/run_verbs.hpp"
#include "common/interrupt.hpp"
#include "report/render_file.hpp"
#include "report/view.hpp"

namespace strata::cli {
namespace {

// The result in the wanted form on standard output; for a person also the report's place.
int show_result(const RunArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return print_error(run.error());
  const auto result = report::view(*run);
  engine::keep_verdicts(store, setting.run_id, result);
  if (const int code = a.quiet ? 0 : print_result(result, a.format); code != 0) return code;
  const auto document = report::compare_document({result});
  return a.output.empty() ? write_stored_page(document, setting.place, store.path(), setting.run_id)
                          : write_page(document, setting.place, a.output);
}

}  // namespace

Result<int> run_as(const requests::CompareRequest& request, RunArguments& a, engine::RunKind kind, const Shown& shown) {
  STRATA_TRY(format_option(a.format));
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  const auto path = store::Store::path_of(a.store);
  kind.settings.update(kept_of(a));
  ProgressLine line(a.quiet);
  auto ready = engine::prepare_run(request, a, path, kind, line);
  if (interrupted()) return interrupt_exit_code();
  if (!ready) return tl::unexpected(ready.error());
  if (a.dry_run) return print_plan(*ready, a, shown);
  warn_of_model_file(request.options.model);
  auto store = STRATA_TRY(store::Store::open(path));
  const auto ended = STRATA_TRY(engine::run_prepared(*ready, request, a, store, kind, line));
  line.clear();
  // What was measured before an error is shown all the same.
  const int code = ended.has_case ? shown.result(a, store, ready->setting) : 0;
  if (interrupted())
    tell(ended.has_case ? fmt::format("interrupted: what was measured is stored; ./strata resume {} continues\n",
                                      ready->setting.run_id)
                        : std::string("interrupted: nothing was measured, and nothing is stored\n"));
  if (interrupted()) return interrupt_exit_code();
  if (ended.failed) return tl::unexpected(*ended.failed);
  return code != 0 ? code : ended.exit_code();
}

Result<int> run_compare(const requests::CompareRequest& request, RunArguments& a) {
  const auto path = store::Store::path_of(a.store);
  return run_as(request, a, engine::comparison(request),
                {.result = show_result,
                 .plan = [path](const auto& ready, auto*) { return engine::plan_comparison(ready, path); }});
}

}  // namespace strata::cli
