// SPDX-License-Identifier: Apache-2.0
// `strata export MODEL --level L -o DIR`
#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/escape.hpp"
#include "common/interrupt.hpp"
#include "engine/export_runner.hpp"
#include "requests/members.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace {

struct ExportArguments : requests::ExportRequest {
  std::string store;
};

void say_done(const engine::Exported& done) {
  const auto& evidence = done.evidence;
  if (!evidence.certificate.is_object())
    tell(fmt::format("warning: nothing is proven about this artefact: {}\n  prove it: {}\n", evidence.why_not,
                     done.proving));
  else if (!evidence.note.empty())
    tell(fmt::format("warning: {}\n  prove it: {}\n", evidence.note, done.proving));
  answer(fmt::format("{}\n", done.folder.string()));
  if (evidence.certificate.is_object())
    answer(fmt::format("  equal work proven by run {}\n", evidence.certificate.value("run", "")));
  answer(fmt::format("  build it: cd {} && {}\n  test it:  {}\n", escape::shell_word(done.folder.string()), done.build,
                     done.test));
}

Result<int> export_level(const ExportArguments& a) {
  ProgressLine line;
  const auto done = engine::run_export(a, store::Store::path_of(a.store), line);
  line.clear();
  if (!done && interrupted()) {  // which is no fault of the level
    print_error({"interrupted: nothing was written", "", Exit::failed});
    return interrupt_exit_code();
  }
  say_done(STRATA_TRY(done));
  return 0;
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("export",
                                  "write a level's artefact with a program that serves it, a test and its certificate");
  auto a = std::make_shared<ExportArguments>();
  add_members(*verb, requests::members_of(*a));
  verb->add_option("--store", a->store,
                   "the store to read the certificate from (default: strata/strata.db in the XDG data folder)")
      ->type_name("PATH");
  verb->footer(
      "Exit codes: 0 written; 1 the artefact could not be made or written; 2 wrong usage; 3 the level cannot run the "
      "network here, or the environment lacks what is needed; 130, 143 ended by Ctrl-C or SIGTERM, nothing was "
      "written.");
  set_action(
      *verb, exit_code, [a] { return export_level(*a); },
      [a] { return engine::needs_of(static_cast<const requests::ExportRequest&>(*a)); });
}

}  // namespace strata::cli
