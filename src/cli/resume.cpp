// SPDX-License-Identifier: Apache-2.0
// `strata resume RUN`: goes on with a run that was cut off.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/run_verbs.hpp"
#include "cli/verbs.hpp"
#include "report/run_documents.hpp"
#include "requests/codec.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

struct ResumeArguments {
  std::string run, store, format, output, python;
  std::vector<std::string> environments;
};

// Asks again what the run was asked; what is stored of it is not measured again.
Result<int> go_on(store::Run run, const ResumeArguments& a, const std::vector<plan::NamedPython>& environments,
                  const fs::path& store, const fs::path& output) {
  auto request = requests::read_request(run.settings.request);
  if (!request)
    return fail(fmt::format("this strata refuses the request of run {}: {}", run.run_id, request.error().what),
                "ask again: " + run.command, Exit::usage);
  STRATA_TRY(engine::check_interpreters(run.run_id, requests::common_of(*request), a.python, environments));
  RunArguments arguments;
  take_kept(arguments, run.settings);
  arguments.store = store.string();
  if (!a.format.empty()) arguments.format = a.format;
  if (!output.empty()) arguments.output = output.string();
  arguments.resumed = std::move(run);
  return run_request(*request, arguments);
}

Result<int> resume(const ResumeArguments& a) {
  const auto path = fs::absolute(store::Store::path_of(a.store));
  auto run = STRATA_TRY(engine::resumable_run(path, a.run));
  const auto folder = run.settings.folder;
  std::error_code ec;
  const auto environments = STRATA_TRY(plan::parse_environments(a.environments));
  const auto output = a.output.empty() ? fs::path() : fs::absolute(a.output, ec);
  fs::current_path(folder, ec);  // in which its paths hold
  if (ec)
    return fail(fmt::format("run {} began in {}, which cannot be entered: {}", run.run_id, folder, ec.message()),
                "its network and files were named from there", Exit::usage);
  if (!report::is_suite(run)) return go_on(std::move(run), a, environments, path, output);
  return resume_suite(std::move(run), {a.store.empty() ? "" : path.string(), a.format, a.python});
}

// Those of what it was asked, with the interpreters that the call names.
Result<engine::Needs> needs_of_rest(const ResumeArguments& a) {
  const auto environments = STRATA_TRY(plan::parse_environments(a.environments));
  const auto run = STRATA_TRY(engine::resumable_run(store::Store::path_of(a.store), a.run));
  if (report::is_suite(run)) {
    auto suite = STRATA_TRY(requests::read_suite_request(run.settings.request));
    suite.python = a.python;
    return engine::needs_of(suite, a.store);
  }
  auto request = STRATA_TRY(requests::read_request(run.settings.request));
  auto& common = requests::common_of(request);
  common.python = a.python;
  common.options.environments = environments;
  return engine::needs_of(request);
}

}  // namespace

void add_resume(CLI::App& app, int& exit_code) {
  auto* verb =
      app.add_subcommand("resume", "continue a comparison, a training or a suite that was interrupted or killed");
  auto a = std::make_shared<ResumeArguments>();
  verb->add_option("run", a->run, "its id, a beginning of it, its name, or last")->required();
  add_store(*verb, a->store);
  verb->add_option("--python", a->python, "the interpreter that the run began with, if it named one")
      ->type_name("PATH");
  verb->add_option("--env", a->environments, "the environments that the run began with, as it named them")
      ->type_name("NAME=PATH")
      ->allow_extra_args(false);
  choice(verb->add_option("--format", a->format, "of the result on standard output (default: the run's)"),
         {"text", "json", "csv", "md"});
  verb->add_option("-o,--output", a->output, "where to write the HTML report (default: the run's)")->type_name("PATH");
  verb->footer(
      "Exit codes: 0 measured; the others are those of compare. Whole restarts that are stored are not measured again; "
      "with --tuned, whole cases; of a training, whole epochs; of a suite, whole entries.");
  set_action(
      *verb, exit_code, [a] { return resume(*a); }, [a] { return needs_of_rest(*a); });
}

}  // namespace strata::cli
