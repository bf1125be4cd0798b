// SPDX-License-Identifier: Apache-2.0
#include "cli/say.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "common/nearest.hpp"
#include "report/render_file.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

int complain(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.what);
  if (!error.hint.empty()) fmt::print(stderr, "  try: {}\n", error.hint);
  return static_cast<int>(error.exit);
}

report::TerminalStyle terminal_style() {
  report::TerminalStyle style;
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
    style.width = std::min<int>(size.ws_col, 140);
  style.colour = isatty(STDOUT_FILENO) && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  const auto locale = variable("LC_ALL") + variable("LC_CTYPE") + variable("LANG");
  style.unicode = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return style;
}

ProgressLine::ProgressLine()
    : terminal_(isatty(STDERR_FILENO)), start_(Clock::now()), last_print_(start_ - std::chrono::hours(1)) {}

measure::Progress ProgressLine::callbacks() {
  return {[this](const std::string& line) { note(line); },
          [this](const std::string& doing, double left) { status(doing, left); }};
}

void ProgressLine::clear() {
  if (terminal_ && shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

void ProgressLine::note(const std::string& line) {
  clear();
  fmt::print(stderr, "{}\n", line);
}

void ProgressLine::status(const std::string& doing, double seconds_left) {
  const auto now = Clock::now();
  // A new phase is always told; the same one with another number only now and then.
  const auto phase = doing.substr(0, doing.find(", round"));
  const auto wait = terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10000);
  if (phase == last_ && now - last_print_ < wait) return;
  last_ = phase;
  last_print_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const auto left =
      seconds_left >= 0 ? fmt::format(", about {:.0f} s of measuring left", std::ceil(seconds_left)) : std::string();
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K[{:.0f} s] {}{}", elapsed, doing, left);
    std::fflush(stderr);
    shown_ = true;
  } else {
    fmt::print(stderr, "[{:.0f} s] {}{}\n", elapsed, doing, left);
  }
}

Result<fs::path> plotly_js(const Installation& place) {
  // .venv/bin/python -> .venv/lib/python3.*/site-packages/plotly/package_data/plotly.min.js
  const auto lib = fs::path(place.tools_python).parent_path().parent_path() / "lib";
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(lib, ec)) {
    const auto script = entry.path() / "site-packages/plotly/package_data/plotly.min.js";
    if (fs::exists(script, ec)) return script;
  }
  return fail(fmt::format("plotly is not installed below {}", lib.string()),
              "run ./strata compare or ./test once: they set it up", Exit::environment);
}

Result<report::Format> format_option(const std::string& name) {
  if (const auto format = report::format_from(name)) return *format;
  const auto near = nearest(name, {"text", "json", "csv", "md"});
  return fail(fmt::format("--format {}: unknown{}; allowed: text, json, csv, md", name,
                          near ? fmt::format(" (did you mean '{}'?)", *near) : ""),
              "", Exit::usage);
}

int print_result(const nlohmann::json& result, const std::string& format) {
  const auto text = report::render({result}, format, {}, terminal_style());
  if (!text) return complain(text.error());
  fmt::print("{}", *text);
  return std::fflush(stdout) == 0 ? 0
                                  : complain({fmt::format("cannot write the result: {}", std::strerror(errno)),
                                              "check where standard output goes"});
}

}  // namespace strata::cli
