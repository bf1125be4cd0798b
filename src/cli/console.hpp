// SPDX-License-Identifier: Apache-2.0
// What every verb needs to speak to a person: errors, progress, the terminal's style, and finding the plotting library.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/places.hpp"
#include "common/result.hpp"
#include "engine/events.hpp"
#include "report/document.hpp"
#include "report/table.hpp"
#include "report/terminal.hpp"

namespace strata::cli {

// strata's command as its user types it: as text has it that is "./strata", of a package on the PATH what its launcher
// says (STRATA_COMMAND).
std::string as_typed(std::string_view text);

// Text on standard error, what a terminal would act on taken out (escape::terminal). Never fails: a full or closed
// stream costs a line, and no measurement.
void tell(std::string_view text);

// Text on standard output, likewise: what the verb was asked for. finish() says if it could not be written.
void answer(std::string_view text);

// The same with colours: for what the renderers of report/ wrote, who take them out of what is not their own.
void answer_styled(std::string_view text);

// JSON on standard output, complete: what a terminal would act on is escaped. A negative indent is one line.
void answer_json(const nlohmann::json& value, int indent);

// Whether nobody reads standard output any more, or it is full.
bool answer_was_lost();

// The exit code of the program: 1 if all went well but the answer could not be written, 141 if its reader went away.
int finish(int exit_code);

// Gives the program the standard streams that it was started without (2>&-). Call before anything is opened.
void open_standard_streams();

// "error: what" and "  try: hint" on standard error; returns the exit code.
int print_error(const Error& error);
// The exit code of what was done; an error is printed.
int code_of(const Result<int>& done);
int code_of(const Result<void>& done);

// On standard error, before a network that comes as a file runs: what it could do.
void warn_of_model_file(const std::string& model);

// Colour and Unicode only where the terminal has them (NO_COLOR and TERM=dumb are respected).
report::TerminalStyle terminal_style(int descriptor = 1);

// One line that is rewritten on a terminal; plain lines, at most one every ten seconds, elsewhere. Everything on
// standard error. `quiet`: without the tables of what is planned and of what there is so far.
class ProgressLine final : public engine::EventSink {
 public:
  // What there is so far of a case, in the style of standard error; empty: nothing.
  using SoFar = std::function<std::string(const engine::EndedRestart&, const report::TerminalStyle&)>;

  explicit ProgressLine(bool quiet = false);
  ~ProgressLine() override { clear(); }
  void note(const std::string& sentence) override;
  void progress(const std::string& doing, double seconds_left, std::string_view of = "measuring") override;
  void planned(const engine::PlannedSweep& plan) override;
  // On a terminal with room the table is drawn anew in its place after each, elsewhere it is written after the first.
  void restart_ended(const engine::EndedRestart& restart) override;
  void show_so_far(SoFar so_far) { so_far_ = std::move(so_far); }
  void clear();  // of the line and the table

 private:
  void clear_line();
  void clear_table();
  bool has_room_for(const std::string& table) const;

  bool terminal_, quiet_;
  bool shown_ = false;
  SoFar so_far_;
  std::string table_;  // that stands above the line
  engine::ProgressPace pace_;
  std::chrono::steady_clock::time_point start_;
};

// plotly.min.js of strata's own Python. Error: it is not installed.
Result<std::filesystem::path> plotly_js(const Installation& place);

// text, json, csv or md. Error: another word, with the nearest.
Result<report::Format> format_option(const std::string& name);

// The result in the wanted format on standard output.
Result<void> print_result(const analysis::RunResult& result, const std::string& format);

// A report as a document. In one of --format's formats.
Result<void> print_document(const document::Document& document, const std::string& format);

// As HTML, and says where: the page that belongs to a run of this store, beside it. All of these share one copy of
// plotly's script in their folder. That it cannot be written is no error: nobody asked for it.
void write_stored_page(const document::Document& document, const Installation& place,
                       const std::filesystem::path& store, const std::string& run_id);

// As HTML that needs nothing beside it, and says where.
Result<void> write_page(const document::Document& document, const Installation& place,
                        const std::filesystem::path& path);

}  // namespace strata::cli
