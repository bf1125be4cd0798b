// SPDX-License-Identifier: Apache-2.0
// The program: verbs and what is common to wrong usage.
#include <fmt/format.h>
#include <malloc.h>
#include <stdlib.h>

#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "store/store.hpp"

namespace {

int print_help(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream text, errors;
  const int code = app.exit(error, text, errors);
  strata::cli::answer(text.str());
  strata::cli::tell(errors.str());
  return strata::cli::finish(code);
}

// Asks libraries not to report each use to their publishers: they would send names and hashes of the user's network,
// and work beside what is measured. ONNX Runtime obeys the first variable, libraries of Hugging Face the second;
// OpenVINO obeys none (levels/openvino). A value that the user has set stays.
void ask_for_no_telemetry() {
  for (const char* name : {"ORT_DISABLE_TELEMETRY", "DO_NOT_TRACK"}) ::setenv(name, "1", 0);
}

}  // namespace

int main(int argc, char** argv) {
  // What a proof converts is tens of megabytes a tensor, again and again: without these each is mapped and cleared
  // anew.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  ask_for_no_telemetry();
  const std::vector<std::string> words(argv + 1, argv + argc);
  strata::cli::open_standard_streams();
  strata::install_interrupt_handler();
  strata::store::say_through(strata::cli::tell);
  CLI::App app{
      "strata: where, between Python and the hardware, do time and memory go, and what is gained by moving down a "
      "level?",
      "./strata"};
  strata::cli::prepare_help(app);
  app.set_version_flag("--version", "strata " STRATA_VERSION);
  app.require_subcommand(1);
  strata::cli::add_needs(app);
  app.footer("`./strata VERB --help` shows the options of a verb, with defaults, and what its exit codes mean.");
  int exit_code = 0;
  strata::cli::add_run_verbs(app, words, exit_code);
  strata::cli::add_run(app, words, exit_code);
  strata::cli::add_resume(app, exit_code);
  strata::cli::add_status(app, exit_code);
  strata::cli::add_list(app, exit_code);
  strata::cli::add_runs(app, exit_code);
  strata::cli::add_show(app, exit_code);
  strata::cli::add_diff(app, exit_code);
  strata::cli::add_report(app, exit_code);
  strata::cli::add_export_data(app, exit_code);
  strata::cli::add_export(app, exit_code);
  strata::cli::add_graph(app, exit_code);
  strata::cli::add_generate(app, exit_code);
  strata::cli::add_pack(app, exit_code);
  strata::cli::add_cache(app, exit_code);
  strata::cli::add_data(app, exit_code);
  strata::cli::add_level_verbs(app, exit_code);
  strata::cli::add_doctor(app, exit_code);
  strata::cli::add_engine(app, exit_code);
  strata::cli::refuse_empty_values(app);
  try {
    strata::cli::refuse_empty_words(argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (strata::cli::asks_for_needs(app)) {
      strata::cli::tell_needs(app, strata::engine::Needs());
      return strata::cli::finish(0);
    }
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
      return print_help(app, error);  // --help, --version
    return strata::cli::print_error(strata::cli::in_words(app, error, argc, argv));
  } catch (const std::bad_alloc&) {
    exit_code =
        strata::cli::print_error({"this machine has no memory left", "close other programs, or a smaller batch"});
  } catch (const std::exception& error) {  // what no check foresaw must cost neither the exit code nor a sentence
    exit_code = strata::cli::print_error(
        {fmt::format("unforeseen: {}", error.what()), "what was measured is stored: ./strata show last"});
  }
  return strata::cli::finish(exit_code);
}
