// SPDX-License-Identifier: Apache-2.0
// `strata show RUN`, `strata report [RUN...]`, `strata export-data RUN`: a stored run as text, HTML, or raw samples.
#include <fmt/format.h>

#include <memory>

#include "analysis/judge_stored.hpp"
#include "cli/console.hpp"
#include "cli/operations_view.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/write_whole.hpp"
#include "engine/queries.hpp"
#include "report/render_file.hpp"
#include "report/result.hpp"
#include "report/run_documents.hpp"
#include "report/samples.hpp"
#include "report/terminal.hpp"
#include "report/trace.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

struct ShowArguments {
  std::vector<std::string> runs;
  std::string store, format = "text", output, level, from_json;
  bool certificate = false, ledger = false, operations = false;
  OperationsArguments view;
};

Result<store::Store> open_store(const std::string& path) {
  return store::Store::open_existing(store::Store::path_of(path));
}

Result<store::Run> load(const ShowArguments& a, const std::string& which) {
  auto store = STRATA_TRY(open_store(a.store));
  return store.load_run(which);
}

Result<void> show(const ShowArguments& a) {
  const auto format = STRATA_TRY(format_option(a.format));
  const auto store = STRATA_TRY(open_store(a.store));
  const auto run = STRATA_TRY(store.load_run(a.runs.empty() ? "last" : a.runs.front()));
  if (const auto document = engine::document_of(run, store); document && !a.operations)
    return print_document(STRATA_TRY(*document), a.format);
  const auto result = report::result_of(run);
  if (a.operations) {
    auto view = a.view.view();
    if (!a.level.empty()) view.level = a.level;
    return print_document(STRATA_TRY(report::operations_document(result, view)), a.format);
  }
  if (format != report::Format::text) return print_result(result, a.format);
  if (a.certificate)
    answer_styled(report::terminal_certificate(result, terminal_style(),
                                               a.level.empty() ? std::nullopt : std::optional<std::string>(a.level)));
  else if (a.ledger)
    STRATA_TRY(print_result(result, "ledger"));
  else
    answer_styled(fmt::format("{}\n{}", report::terminal(result, terminal_style()),
                              report::terminal_ledger(result, terminal_style())));
  return {};
}

// False: none of the runs has a page of its own.
Result<bool> write_own_report(const ShowArguments& a) {
  if (!a.from_json.empty()) return false;
  const auto store = open_store(a.store);
  if (!store) return false;  // who reads the others says it
  bool written = false;
  for (const auto& which : a.runs.empty() ? std::vector<std::string>{"last"} : a.runs) {
    const auto run = store->load_run(which);
    if (!run) continue;
    const auto document = engine::document_of(*run, *store);
    if (!document) continue;
    if (a.runs.size() > 1)
      return fail(fmt::format("{} is a {}, and has a page of its own", run->run_id,
                              report::is_suite(*run)   ? "suite's run"
                              : report::is_sweep(*run) ? "sweep"
                                                       : "training"),
                  fmt::format("./strata report {}", run->run_id), Exit::usage);
    const auto page = STRATA_TRY(*document);
    STRATA_TRY(
        write_page(page, installation(), a.output.empty() ? fs::path(run->run_id + ".html") : fs::path(a.output)));
    written = true;
  }
  return written;
}

Result<void> write_report(const ShowArguments& a) {
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  if (STRATA_TRY(write_own_report(a))) return {};
  std::vector<analysis::RunResult> results;
  std::string name = "strata-report";
  if (!a.from_json.empty()) {
    results = STRATA_TRY(report::read_results(a.from_json));
  } else {
    for (const auto& which : a.runs.empty() ? std::vector<std::string>{"last"} : a.runs) {
      const auto run = STRATA_TRY(load(a, which));
      name = run.run_id;
      results.push_back(report::result_of(run));
    }
  }
  const auto script = STRATA_TRY(plotly_js(installation()));
  const auto page = STRATA_TRY(report::html(results, script));
  const fs::path path = a.output.empty() ? fs::path(name + ".html") : fs::path(a.output);
  STRATA_TRY(write_whole(path, page));
  answer(fmt::format("{}\n", path.string()));
  return {};
}

Result<void> export_data(const ShowArguments& a) {
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  auto run = STRATA_TRY(load(a, a.runs.front()));
  analysis::judge_stored(run);
  const auto text = a.format == "trace"  ? STRATA_TRY(report::trace_json(report::result_of(run)))
                    : a.format == "json" ? report::samples_json(run)
                                         : report::samples_csv(run);
  if (!a.output.empty()) return write_whole(a.output, text);
  answer(text);
  return {};
}

}  // namespace

void add_show(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("show", "show a stored run");
  auto a = std::make_shared<ShowArguments>();
  verb->add_option("run", a->runs, "the run's id, the beginning of it, its name, or last")->expected(1);  // if any
  auto* certificate = verb->add_flag("--certificate", a->certificate, "every line of the proof of equal work");
  verb->add_flag("--ledger", a->ledger, "only the ledger: a breakdown of what each step of levels costs or saves")
      ->excludes(certificate);
  auto* operations = verb->add_flag("--operations", a->operations, "the operations of its profiles (--profile)")
                         ->excludes(certificate)
                         ->excludes("--ledger");
  for (auto* option : add_operations_view(*verb, a->view)) option->needs(operations);
  verb->add_option("--level", a->level, "the certificate, or the operations, of this level only")->type_name("LEVEL");
  format_choice(verb->add_option("--format", a->format, "of the run; --certificate and --ledger are text"));
  add_store(*verb, a->store);
  verb->footer("Exit codes: 0 shown; 1 the store cannot be read; 2 wrong usage, or there is no such run.");
  set_action(*verb, exit_code, [a, verb] {
    if (a->format != "text") refuse(*verb, {"--certificate", "--ledger"}, "--format " + a->format);
    if (!a->level.empty() && !a->certificate && !a->operations)
      throw WrongUsage("--level means nothing without --certificate or --operations", "add one of them");
    return show(*a);
  });
}

void add_report(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("report", "write runs as one self-contained HTML page");
  auto a = std::make_shared<ShowArguments>();
  auto* runs = verb->add_option("run", a->runs, "runs by id, name or last (default: last)");
  verb->add_option("-o,--output", a->output, "the page's file (default: RUN.html here)")->type_name("PATH");
  auto* json =
      verb->add_option("--from-json", a->from_json, "a result that `show --format json` wrote, instead of a stored run")
          ->type_name("PATH");
  json->excludes(runs)->excludes(add_store(*verb, a->store));
  verb->footer(
      "Exit codes: 0 written; 1 the store cannot be read or the page not be written; 2 wrong usage, or there is no "
      "such run.");
  set_action(*verb, exit_code, [a] { return write_report(*a); });
}

void add_export_data(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand(
      "export-data",
      "write every raw sample of a run: its blocks (csv), its other passes too (json), or the operations of "
      "its profiles (trace), as PyTorch's profiler writes them");
  auto a = std::make_shared<ShowArguments>();
  a->format = "csv";
  verb->add_option("run", a->runs, "the run's id, the beginning of it, its name, or last")->required()->expected(1);
  choice(verb->add_option("--format", a->format, "of the samples")->capture_default_str(), {"csv", "json", "trace"});
  verb->add_option("-o,--output", a->output, "the file to write (default: standard output)")->type_name("PATH");
  add_store(*verb, a->store);
  verb->footer(
      "Exit codes: 0 written; 1 the store cannot be read or the file not be written; 2 wrong usage, or there is no "
      "such run.");
  set_action(*verb, exit_code, [a] { return export_data(*a); });
}

}  // namespace strata::cli
