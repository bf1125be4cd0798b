// SPDX-License-Identifier: Apache-2.0
// `strata generate MODEL -o DIR`
#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "engine/generate_runner.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace {

Result<int> generate_program(const requests::GenerateRequest& request) {
  ProgressLine line;
  const auto result = engine::run_generate(request, line);
  line.clear();
  if (!result && interrupted()) return interrupt_exit_code();
  const auto done = STRATA_TRY(result);
  answer(fmt::format("{}\n  {}\n  build it: {}\n  test it:  {}\n", done.folder.string(), done.summary, done.build,
                     done.test));
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand(
      "generate", "write the network as a static C++ program that needs neither PyTorch nor Python nor strata");
  auto a = std::make_shared<requests::GenerateRequest>();
  add_members(*verb, requests::members_of(*a));
  for (const char* option : {"--memory-budget", "--loss", "--clip-norm"})
    verb->get_option(option)->needs(verb->get_option("--train"));
  verb->footer(
      "Exit codes: 0 written; 1 the capture or the writing failed; 2 wrong usage; 3 the network has no graph, or an "
      "operation that cannot be written, or the environment lacks what is needed; 130, 143 ended by Ctrl-C or SIGTERM, "
      "nothing was written.");
  set_action(
      *verb, exit_code, [a] { return generate_program(*a); },
      [a] { return engine::needs_of(static_cast<const requests::GenerateRequest&>(*a)); });
}

}  // namespace strata::cli
