// SPDX-License-Identifier: Apache-2.0
// `strata resume RUN`: goes on with a comparison that was cut off. Its stored arguments are read again, as compare
// reads them; what is stored of its cases is not measured again.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/run.hpp"
#include "cli/verb_words.hpp"
#include "cli/verbs.hpp"
#include "report/access.hpp"
#include "report/suite.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

struct ResumeArguments {
  std::string run, store, format, output, python;
  std::vector<std::string> environments;
};

// As they were typed; empty: another program wrote them.
std::vector<std::string> words_of(const store::Run& run) {
  std::vector<std::string> words;
  for (const auto& word : report::list(run.settings, "arguments")) {
    if (!word.is_string()) return {};
    words.push_back(word.get<std::string>());
  }
  return words;
}

// The run, if it can go on.
Result<store::Run> find(const ResumeArguments& a, const fs::path& path) {
  const auto store = store::Store::open_existing(path);
  if (!store) return tl::unexpected(store.error());
  auto run = store->load_run(a.run);
  if (!run) return run;
  if (store::state_of(*run) == store::RunState::running)
    return fail(fmt::format("run {} is being measured by another process", run->run_id),
                "let it end; `./strata list runs` shows it", Exit::usage);
  if (run->imported)
    return fail(fmt::format("run {} came from another store, and what it says is not executed here", run->run_id),
                "continue it where it was measured, or run its command, if you trust it: " + run->command, Exit::usage);
  if (words_of(*run).empty())
    return fail(fmt::format("run {} does not say how it was started", run->run_id), "compare again: " + run->command,
                Exit::usage);
  return run;
}

// Set-up has to know the environments before this program starts.
Result<void> check_environments(const std::string& run_id, const std::vector<std::string>& began,
                                const std::vector<plan::NamedPython>& now) {
  const auto before = STRATA_TRY(plan::parse_environments(began));
  if (before == now) return {};
  return fail(before.empty() ? fmt::format("run {} began without --env", run_id)
                             : fmt::format("run {} began with{}", run_id, plan::environment_words(before)),
              before.empty() ? "leave --env out" : "add" + plan::environment_words(before), Exit::usage);
}

int resume(const ResumeArguments& a) {
  const auto path = fs::absolute(store::Store::path_of(a.store));
  auto run = find(a, path);
  if (!run) return print_error(run.error());
  const auto folder = report::text(run->settings, "folder");
  std::error_code ec;
  const auto environments = plan::parse_environments(a.environments);
  if (!environments) return print_error(environments.error());
  const auto output = a.output.empty() ? fs::path() : fs::absolute(a.output, ec);
  fs::current_path(folder, ec);  // in which its paths hold
  if (ec)
    return print_error(
        {fmt::format("run {} began in {}, which cannot be entered: {}", run->run_id, folder, ec.message()),
         "its network and files were named from there", Exit::usage});
  try {
    if (report::is_suite(*run))
      return resume_suite(std::move(*run), {.store = path.string(), .format = a.format, .python = a.python});
    const auto words = words_of(*run);  // read as their verb reads them
    const auto verb = VerbWords::of(words.front());
    if (!verb) return print_error({fmt::format("run {} cannot be continued", run->run_id), "", Exit::usage});
    verb->read(words);
    auto& arguments = verb->run_arguments();
    const auto& python = verb->request().python;
    if (auto same = check_environments(run->run_id, verb->comparison().environments, *environments); !same)
      return print_error(same.error());
    if (python != a.python)  // which set-up has to know before this program starts
      return print_error(
          {fmt::format("run {} began with {}", run->run_id, python.empty() ? "strata's own Python" : python),
           python.empty() ? "leave --python out" : "add --python " + python, Exit::usage});
    arguments.store = path.string();
    if (!a.format.empty()) arguments.format = a.format;
    if (!output.empty()) arguments.output = output.string();
    arguments.resumed = std::move(*run);
    const auto code = verb->run();
    return code ? *code : print_error(code.error());
  } catch (const CLI::ParseError& error) {
    return print_error({fmt::format("this strata refuses the command of run {}: {}", run->run_id, error.what()),
                        "compare again: " + run->command, Exit::usage});
  }
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
  verb->callback([a, &exit_code] { exit_code = resume(*a); });
}

}  // namespace strata::cli
