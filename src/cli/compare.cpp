// SPDX-License-Identifier: Apache-2.0
// `strata compare MODEL`: options, then cases one after the other, then the first screen and the report.
#include "cli/compare.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "cli/console.hpp"
#include "cli/document.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "engine/run_case.hpp"
#include "measure/machine_facts.hpp"
#include "report/compare.hpp"
#include "report/render_file.hpp"
#include "report/sentence.hpp"
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
  std::map<std::string, std::string> verdicts;
  for (const auto& run_case : result["cases"])
    verdicts[report::text(run_case, "key")] = report::brief_verdict(run_case);
  (void)store.set_verdicts(setting.run_id, verdicts);  // a list of runs without them is no reason to end in an error
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

Result<int> run_as(CompareArguments& a, const RunKind& kind) {
  STRATA_TRY(read_texts(a));
  STRATA_TRY(format_option(a.format));
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  const auto path = a.store.empty() ? store::Store::default_path() : fs::path(a.store);
  auto stored_before = STRATA_TRY(store::Store::look_at(path));
  auto ready = prepare(a);
  if (interrupted()) return interrupt_exit_code();
  if (!ready) return tl::unexpected(ready.error());
  if (kind.arrange) STRATA_TRY(kind.arrange(*ready));
  STRATA_TRY(engine::check_ci_width(*ready, stored_before));
  stored_before.reset();
  if (a.dry_run) return print_plan(*ready, a);
  STRATA_TRY(engine::check_resumed(*ready, a));
  warn_of_model_file(a.options.model);
  auto store = STRATA_TRY(store::Store::open(path));
  auto facts = measure::MachineFacts::of(ready->setting.machine, ready->setting.effort.budget_s, store);
  auto run = a.resumed ? *a.resumed : engine::describe_run(*ready, a, a);
  if (!kind.verb.empty()) run.settings["verb"] = kind.verb;
  run.settings.update(kind.settings);
  const auto ended = engine::carry_out(std::move(run), a.resumed.has_value(), *ready, store, [&](auto& stored) {
    ProgressLine line(a.quiet);
    return kind.run_cases(*ready, facts, store, stored, line);
  });
  // What was measured before an error is shown all the same.
  const int shown = ended.has_case ? kind.show(a, store, ready->setting) : 0;
  if (interrupted())
    tell(ended.has_case ? fmt::format("interrupted: what was measured is stored; ./strata resume {} continues\n",
                                      ready->setting.run_id)
                        : std::string("interrupted: nothing was measured, and nothing is stored\n"));
  if (interrupted()) return interrupt_exit_code();
  if (ended.failed) return tl::unexpected(*ended.failed);
  if (shown != 0) return shown;
  return ended.exit_code();
}

Result<int> run_compare(CompareArguments& a) {
  return run_as(a, {.verb = "", .arrange = {}, .run_cases = engine::run_cases, .show = show_result});
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
