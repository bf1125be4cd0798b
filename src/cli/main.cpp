// SPDX-License-Identifier: Apache-2.0
// The program: verbs and what is common to wrong usage.
#include <fmt/format.h>

#include <exception>
#include <new>
#include <sstream>

#include "cli/doctor.hpp"
#include "cli/level.hpp"
#include "cli/say.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "common/nearest.hpp"
#include "store/store.hpp"

namespace {

// The app that the arguments chose: a verb, or a verb of a verb.
const CLI::App* chosen(const CLI::App& app) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  return deepest;
}

// What the person probably meant by an argument that nobody knows.
std::string suggestion(const CLI::App& app, const std::string& got) {
  std::vector<std::string> known;
  if (got.starts_with("-"))
    for (const auto* option : app.get_options())
      for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  else
    for (const auto* verb : app.get_subcommands(std::function<bool(const CLI::App*)>()))
      known.push_back(verb->get_name());
  const auto near = strata::nearest(got.substr(0, got.find('=')), known);
  return near ? fmt::format(" (did you mean '{}'?)", *near) : "";
}

int wrong_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* where = chosen(app);
  std::string what = error.what();
  const auto extras = app.remaining(true);
  const bool bare = argc < 2;
  if (!bare && where == &app && !std::string(argv[1]).starts_with("-"))
    what = fmt::format("unknown verb '{}'{}", argv[1], suggestion(app, argv[1]));
  else if (!extras.empty())
    what = fmt::format("unknown argument '{}'{}", extras.front(), suggestion(*where, extras.front()));
  const auto verb = where == &app ? std::string() : " " + where->get_name();
  return strata::cli::complain({what, fmt::format("./strata{} --help", verb), strata::Exit::usage});
}

int print_help(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream text, errors;
  const int code = app.exit(error, text, errors);
  strata::cli::answer(text.str());
  strata::cli::tell(errors.str());
  return strata::cli::finish(code);
}

}  // namespace

int main(int argc, char** argv) {
  strata::cli::open_standard_streams();
  strata::install_interrupt_handler();
  strata::store::when_waiting(strata::cli::tell);
  CLI::App app{
      "strata: where, between Python and the hardware, do time and memory go, and what is gained by moving down a "
      "level?",
      "./strata"};
  app.set_version_flag("--version", "strata " STRATA_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  strata::cli::add_compare(app, exit_code, argc, argv);
  strata::cli::add_list(app, exit_code);
  strata::cli::add_show(app, exit_code);
  strata::cli::add_report(app, exit_code);
  strata::cli::add_export_data(app, exit_code);
  strata::cli::add_export(app, exit_code);
  strata::cli::add_graph(app, exit_code);
  strata::cli::add_generate(app, exit_code);
  strata::cli::add_cache(app, exit_code);
  strata::cli::add_level_verbs(app, exit_code);
  strata::cli::add_doctor(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
      return print_help(app, error);  // --help, --version
    return wrong_usage(app, error, argc, argv);
  } catch (const std::bad_alloc&) {
    exit_code = strata::cli::complain({"this machine has no memory left", "close other programs, or a smaller batch"});
  } catch (const std::exception& error) {  // what no check foresaw must cost neither the exit code nor a sentence
    exit_code = strata::cli::complain(
        {fmt::format("unforeseen: {}", error.what()), "what was measured is stored: ./strata show last"});
  }
  return strata::cli::finish(exit_code);
}
