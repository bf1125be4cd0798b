// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "analysis/result_json.hpp"
#include "common/escape.hpp"
#include "common/nearest.hpp"
#include "engine/installed.hpp"
#include "plan/model_file.hpp"
#include "report/format.hpp"
#include "report/render_file.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
namespace {

constexpr std::size_t kMostInPlan = 200;  // points that are printed one by one before they are measured

int answer_error = 0;  // errno of the first write to standard output that failed

// 0, or errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

std::string as_typed(std::string_view text) {
  constexpr std::string_view kInTree = "./strata";
  std::string out(text);
  const char* command = std::getenv("STRATA_COMMAND");
  if (command == nullptr || *command == '\0') return out;
  for (auto at = out.find(kInTree); at != std::string::npos; at = out.find(kInTree, at + std::strlen(command)))
    out.replace(at, kInTree.size(), command);
  return out;
}

void tell(std::string_view text) {
  (void)write_all(STDERR_FILENO, as_typed(escape::terminal(text)));
}

void answer(std::string_view text) {
  answer_styled(escape::terminal(text));
}

void answer_styled(std::string_view text) {
  if (answer_error == 0) answer_error = write_all(STDOUT_FILENO, as_typed(text));
}

void answer_json(const nlohmann::json& value, int indent) {
  answer(escape::json(value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n");
}

bool answer_was_lost() {
  return answer_error != 0;
}

int finish(int exit_code) {
  if (answer_error == 0) return exit_code;
  // Whoever reads no further (head, less) is content with what it has: said by the code alone, as other programs do.
  if (answer_error == EPIPE) return exit_code == 0 ? 128 + SIGPIPE : exit_code;
  const int code = print_error({fmt::format("cannot write to standard output: {}", std::strerror(answer_error)),
                                "check where it goes; what was measured is stored: ./strata show last"});
  return exit_code == 0 ? code : exit_code;
}

void open_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // Without this the store would become standard output. What nobody can read is not taken for written: standard
    // output that was closed is opened for reading only.
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

int print_error(const Error& error) {
  tell(fmt::format("error: {}\n", error.what));
  if (!error.hint.empty()) tell(fmt::format("  try: {}\n", error.hint));
  return static_cast<int>(error.exit);
}

int code_of(const Result<int>& done) {
  return done ? *done : print_error(done.error());
}

int code_of(const Result<void>& done) {
  return done ? 0 : print_error(done.error());
}

void warn_of_model_file(const std::string& model) {
  if (const auto notice = plan::notice_of(model); !notice.empty()) tell(notice + "\n");
}

report::TerminalStyle terminal_style(int descriptor) {
  report::TerminalStyle style;
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  winsize size{};
  if (isatty(descriptor) && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
    style.width = std::min<int>(size.ws_col, 140);
  style.colour = isatty(descriptor) && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  const auto locale = variable("LC_ALL") + variable("LC_CTYPE") + variable("LANG");
  style.unicode = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return style;
}

ProgressLine::ProgressLine(bool quiet)
    : terminal_(isatty(STDERR_FILENO)),
      quiet_(quiet),
      pace_(terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10000)),
      start_(Clock::now()) {}

void ProgressLine::clear() {
  clear_table();
  table_.clear();
}

void ProgressLine::clear_line() {
  if (terminal_ && shown_) (void)write_all(STDERR_FILENO, "\r\x1b[K");
  shown_ = false;
}

// Up to its first line, and whatever is below is gone.
void ProgressLine::clear_table() {
  clear_line();
  if (!table_.empty())
    (void)write_all(STDERR_FILENO, fmt::format("\x1b[{}A\x1b[J", std::count(table_.begin(), table_.end(), '\n')));
}

// What has scrolled out of sight cannot be drawn anew.
bool ProgressLine::has_room_for(const std::string& table) const {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 &&
         std::count(table.begin(), table.end(), '\n') + 1 < static_cast<std::ptrdiff_t>(size.ws_row);
}

void ProgressLine::note(const std::string& sentence) {
  clear_table();
  tell(fmt::format("{}\n", sentence));
  (void)write_all(STDERR_FILENO, table_);
}

void ProgressLine::restart_ended(const engine::EndedRestart& restart) {
  if (quiet_ || !so_far_ || restart.done >= restart.planned || (!terminal_ && restart.done > 1)) return;
  const auto table = as_typed(so_far_(restart, terminal_style(STDERR_FILENO)));
  clear();
  if (terminal_ && has_room_for(table)) table_ = table;
  if (!table_.empty() || restart.done == 1) (void)write_all(STDERR_FILENO, table);
}

void ProgressLine::planned(const engine::PlannedSweep& plan) {
  if (quiet_) return;
  clear();
  std::vector<report::Cells> rows;
  for (const auto& point : plan.points)
    rows.push_back(
        {point.point, fmt::format("{:.1f}", point.seconds / 60), point.bytes ? report::size(*point.bytes) : "?"});
  if (rows.size() <= kMostInPlan)
    tell(report::table({"point", report::numbers("minutes"), report::numbers("memory")}, rows, report::Format::text));
  note(plan.summary);
}

void ProgressLine::progress(const std::string& doing, double seconds_left, std::string_view of) {
  if (!pace_.is_due(doing)) return;
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto left =
      seconds_left >= 0 ? fmt::format(", about {:.0f} s of {} left", std::ceil(seconds_left), of) : std::string();
  if (terminal_) {
    (void)write_all(STDERR_FILENO, fmt::format("\r\x1b[K[{:.0f} s] {}{}", elapsed, escape::one_line(doing), left));
    shown_ = true;
  } else {
    tell(fmt::format("[{:.0f} s] {}{}\n", elapsed, doing, left));
  }
}

Result<fs::path> plotly_js(const Installation& place) {
  // .venv/bin/python -> .venv/lib/python3.*/site-packages/plotly/package_data/plotly.min.js
  const auto lib = fs::path(place.tools_python).parent_path().parent_path() / "lib";
  // a package of Python's has its own tree two folders below those beside it
  std::vector<fs::path> packages{place.overlay, place.root.parent_path().parent_path()};
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(lib, ec)) packages.push_back(entry.path() / "site-packages");
  for (const auto& folder : packages)
    if (const auto script = folder / "plotly/package_data/plotly.min.js"; fs::exists(script, ec)) return script;
  const auto script = engine::folder_of_module("plotly", place) / "package_data/plotly.min.js";
  if (script.is_absolute() && fs::exists(script, ec)) return script;
  return fail(
      fmt::format("{} has no plotly, which draws pages", place.tools_python),
      fmt::format("run ./strata compare or ./test once: they set it up; beside a package: {} -m pip install plotly",
                  place.tools_python),
      Exit::environment);
}

Result<report::Format> format_option(const std::string& name) {
  if (const auto format = report::format_from(name)) return *format;
  return tl::unexpected(unknown_value("--format", name, {"text", "json", "csv", "md"}));
}

Result<void> print_result(const analysis::RunResult& result, const std::string& format) {
  if (format == "json") {
    answer_json(analysis::to_json(result), 1);
    return {};
  }
  const auto text = STRATA_TRY(report::render({result}, format, {}, terminal_style()));
  format == "text" || format == "ledger" ? answer_styled(text) : answer(text);
  return {};
}

}  // namespace strata::cli
