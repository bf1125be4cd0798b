// SPDX-License-Identifier: Apache-2.0
// `strata compare MODEL`: options, then cases one after the other, then the first screen and the report.
#include "cli/compare.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/document.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "report/compare.hpp"
#include "report/render_file.hpp"
#include "report/view.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// The result in the wanted form on standard output; for a person also the report's place.
int show_result(const CompareArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return print_error(run.error());
  const Json result = report::view(*run);
  engine::keep_verdicts(store, setting.run_id, result);
  if (const int code = a.quiet ? 0 : print_result(result, a.format); code != 0) return code;
  const auto document = report::compare_document({result});
  return a.output.empty() ? write_stored_page(document, setting.place, store.path(), setting.run_id)
                          : write_page(document, setting.place, a.output);
}

}  // namespace

Result<engine::Prepared> prepare(const CompareArguments& a) {
  ProgressLine line;
  return engine::prepare(a, a, line);
}

Result<int> run_as(CompareArguments& a, const engine::RunKind& kind, const Show& show) {
  STRATA_TRY(read_texts(a));
  STRATA_TRY(format_option(a.format));
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  const auto path = store::Store::path_of(a.store);
  ProgressLine line(a.quiet);
  auto ready = engine::prepare_run(a, a, path, kind, line);
  if (interrupted()) return interrupt_exit_code();
  if (!ready) return tl::unexpected(ready.error());
  if (a.dry_run) return print_plan(*ready, a);
  warn_of_model_file(a.options.model);
  auto store = STRATA_TRY(store::Store::open(path));
  const auto ended = STRATA_TRY(engine::run_prepared(*ready, a, a, store, kind, line));
  line.clear();
  // What was measured before an error is shown all the same.
  const int shown = ended.has_case ? show(a, store, ready->setting) : 0;
  if (interrupted())
    tell(ended.has_case ? fmt::format("interrupted: what was measured is stored; ./strata resume {} continues\n",
                                      ready->setting.run_id)
                        : std::string("interrupted: nothing was measured, and nothing is stored\n"));
  if (interrupted()) return interrupt_exit_code();
  if (ended.failed) return tl::unexpected(*ended.failed);
  return shown != 0 ? shown : ended.exit_code();
}

Result<int> run_compare(CompareArguments& a) {
  return run_as(a, engine::comparison(), show_result);
}

int compare(CompareArguments& a) {
  const auto code = run_compare(a);
  return code ? *code : print_error(code.error());
}

void add_compare(CLI::App& app, int& exit_code, int argc, char** argv) {
  auto* verb = app.add_subcommand(
      "compare", "run one network at its levels, prove equal work, measure interleaved, explain the difference");
  auto a = std::make_shared<CompareArguments>();
  a->words.assign(argv + 1, argv + argc);
  add_compare_options(*verb, *a);
  verb->callback([a, &exit_code] { exit_code = compare(*a); });
}

}  // namespace strata::cli
