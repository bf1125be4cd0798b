// SPDX-License-Identifier: Apache-2.0
// `strata compare --command A B`: programs side by side.
#include "cli/run_verbs.hpp"
#include "common/interrupt.hpp"
#include "engine/timed_commands.hpp"
#include "report/render_file.hpp"
#include "report/timed_commands.hpp"

namespace strata::cli {

Result<int> run_commands(const requests::CommandsRequest& request, const RunArguments& a) {
  STRATA_TRY(format_option(a.format));
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  ProgressLine line(a.quiet);
  const auto timed = STRATA_TRY(engine::time_commands(request, line));
  line.clear();
  const auto document = report::commands_document(timed);
  STRATA_TRY(print_document(document, a.format));
  if (!a.output.empty()) STRATA_TRY(write_page(document, installation(), a.output));
  return interrupted() ? interrupt_exit_code() : engine::exit_code_of(timed);
}

}  // namespace strata::cli
