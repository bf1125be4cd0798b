// SPDX-License-Identifier: Apache-2.0
#include "plan/capture.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "common/hash.hpp"
#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "common/process_begin.hpp"
#include "common/python.hpp"
#include "common/temporary.hpp"
#include "plan/capture_process.hpp"
#include "plan/model_file.hpp"
#include "worker/answers.hpp"
#include "worker/worker.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr double kLongest_s = 3600;  // if --timeout does not say

// The log is removed once the error says what it would; else it is kept where the error says.
Error error_of(const worker::Finished& ran, const Capture& capture, const fs::path& log, const fs::path& kept_log) {
  const auto keep = [&] {
    std::error_code ec;
    fs::create_directories(kept_log.parent_path(), ec);
    fs::rename(log, kept_log, ec);
    return fmt::format("the whole log is {}", kept_log.string());
  };
  const auto answer = worker::last_line(ran);
  if (const auto what = outside::text_or(answer, "what"); !what.empty() && !ran.timed_out) {
    const auto code = outside::text_or(answer, "code");
    const auto hint = outside::text_or(answer, "hint");
    const auto& got = outside::field(answer, "got");
    return {what,
            hint.empty() && code == "failed" ? keep() : hint,
            code == "usage"         ? Exit::usage
            : code == "unavailable" ? Exit::environment
                                    : Exit::failed,
            {.where = outside::text_or(answer, "where"), .got = got.is_null() ? "" : outside::shown(got)}};
  }
  const auto where = keep();
  if (ran.timed_out)
    return {fmt::format("capturing the network took longer than {:g} s, building it included",
                        capture.timeout_s.value_or(kLongest_s)),
            fmt::format("{}, or a smaller batch; {}",
                        capture.timeout_s ? "a longer --timeout" : "--timeout with a longer time, as 2h", where)};
  return {fmt::format("capturing the network ended with {}{}{}",
                      ran.signal ? fmt::format("signal {}", *ran.signal) : fmt::format("exit code {}", ran.exit_code),
                      ran.log_tail.empty() ? "" : ":\n", ran.log_tail),
          where};
}

// The process whose number ends the name, behind `begin` and in front of `end`, is gone.
bool is_left_over(const std::string& name, const std::string& begin, const std::string& end) {
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() < begin.size() + end.size()) return false;
  const auto* last = name.data() + name.size() - end.size();
  const auto number = name.find_last_of("-.", name.size() - end.size() - 1) + 1;
  int pid = 0;
  const auto [stop, error] = std::from_chars(name.data() + number, last, pid);
  return error == std::errc() && stop == last && !is_running(pid);
}

// Logs and half-made folders of captures of the same network that were killed. Whether a half-made one is left, whose
// capture runs.
bool remove_left_overs(const fs::path& out) {
  std::error_code ec;
  const auto own = out.filename().string();
  bool half = false;
  for (const auto& entry : fs::directory_iterator(out.parent_path(), ec)) {
    const auto name = entry.path().filename().string();
    if (is_left_over(name, own + ".", ".log") || is_left_over(name, "." + own + ".partial-", ""))
      fs::remove_all(entry.path(), ec);
    else
      half |= name.starts_with("." + own + ".partial-");
  }
  return half;
}

// After a capture that failed: one that was killed with the process that served it may need a moment to go.
void remove_all_of(const fs::path& out, const fs::path& log, const fs::path& incoming) {
  std::error_code ec;
  fs::remove(log, ec);
  fs::remove_all(incoming, ec);
  for (int tries = 0; remove_left_overs(out) && tries < 40; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// Where weight sets lie that cases of one network share. A model file is a program: it writes into a folder of its own,
// so that no other network's weights come from it.
Result<fs::path> networks_of(const Capture& capture, const Installation& place, bool confined) {
  auto folder = place.cache / "networks";
  if (confined) folder /= "file-" + sha256_hex(capture.spec.model).substr(0, 16);
  STRATA_TRY(private_folder(folder, "set STRATA_CACHE to a folder of your own"));
  return folder;
}

// `python` gives the command for words behind the interpreter. A confined process is one capture's alone, since what it
// may write to is.
tl::expected<worker::Finished, worker::Failure> run(
    const Capture& capture, worker::Launch launch, const std::vector<std::string>& arguments,
    const std::function<std::vector<std::string>(const std::vector<std::string>&)>& python, bool confined) {
  const auto show = [&](std::string_view line) {
    const auto message = outside::parse(line, "progress");
    if (!message || !capture.progress) return;
    const auto progress = outside::text_or(*message, "progress");
    if (!progress.empty()) capture.progress(progress);
  };
  const std::chrono::milliseconds longest(static_cast<std::int64_t>(capture.timeout_s.value_or(kLongest_s) * 1000));
  std::vector<std::string> words{"-m", "capture"};
  if (confined) {
    words.insert(words.end(), arguments.begin(), arguments.end());
    launch.argv = python(words);
    return worker::run_to_end(launch, longest, show);
  }
  words.emplace_back("--serve");
  launch.argv = python(words);
  return run_in_kept_process(launch, arguments, longest, show);
}

// Where a capture writes. A model file's may write into a folder of its own only, from which the result is moved.
struct Files {
  fs::path log, kept_log, incoming, out;
  bool confined = false;
};

Files files_of(const Capture& capture, const Installation& place) {
  const auto name = capture.out.filename().string();
  Files files{.log = fmt::format("{}.{}.log", capture.out.string(), getpid()),
              .kept_log = place.cache / "logs" / fmt::format("capture-{}.log", name),
              .incoming = capture.out.parent_path() / fmt::format(".{}.partial-{}", name, getpid()),
              .out = capture.out,
              .confined = is_model_file(capture.spec.model)};
  if (files.confined) files.out = files.incoming / name;
  return files;
}

// What the capture answers at its end, with `more` among its arguments. Error: what it said, or how it ended.
Result<Json> answer_of(const Capture& capture, const Files& files, const std::vector<std::string>& more,
                       const Installation& place, const Environment& environment) {
  remove_left_overs(capture.out);
  worker::Launch launch;
  const auto networks = STRATA_TRY(networks_of(capture, place, files.confined));
  // the spec itself and no file of it, which a killed driver would leave behind
  std::vector<std::string> arguments{
      "--spec", to_json(capture.spec).dump(), "--out", files.out.string(), "--networks", networks.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (capture.memory_limit_gib)
    arguments.insert(arguments.end(), {"--memory-limit", fmt::format("{}", *capture.memory_limit_gib)});
  const auto temporary = STRATA_TRY(temporary_folder(place.cache));
  launch.env = {{"STRATA_OVERLAY", place.overlay},
                {"TMPDIR", temporary},
                {"STRATA_ROOT", place.root.string()},
                {"OMP_NUM_THREADS", std::to_string(capture.spec.threads)}};
  launch.env.merge(python_variables({place.root / "src", place.root / "sdk/python"}));
  launch.log_path = files.log.string();
  std::error_code ec;
  if (files.confined) {
    fs::create_directory(files.incoming, ec);
    STRATA_TRY(confine(launch, place, {files.incoming, networks}));
  }
  const auto python = [&](const std::vector<std::string>& words) {
    return python_command(environment.python, place.root, words);
  };
  const auto ran = run(capture, std::move(launch), arguments, python, files.confined);
  const auto answer = ran ? worker::last_line(*ran) : Json();
  if (!ran || ran->exit_code != 0 || ran->signal || ran->timed_out || !outside::flag_or(answer, "ok", false)) {
    auto error = ran ? error_of(*ran, capture, files.log, files.kept_log) : Error{ran.error().what, ran.error().hint};
    remove_all_of(capture.out, files.log, files.incoming);
    return tl::unexpected(std::move(error));
  }
  fs::remove(files.log, ec);
  return answer;
}

}  // namespace

Result<fs::path> run_capture(const Capture& capture, const Installation& place, const Environment& environment) {
  const auto files = files_of(capture, place);
  std::vector<std::string> more;
  if (!capture.strict.empty()) more = {"--strict", capture.strict.string()};
  if (capture.by_state) more.emplace_back("--by-state");
  const auto answer = STRATA_TRY(answer_of(capture, files, more, place, environment));
  const fs::path folder = capture.by_state ? fs::path(outside::text_or(answer, "folder")) : files.out;
  if (!files.confined) return folder;
  std::error_code ec;
  const auto moved = capture.out.parent_path() / folder.filename();
  fs::rename(folder, moved, ec);  // one that another run has just put there stays
  fs::remove_all(files.incoming, ec);
  if (!fs::exists(moved / "bundle.json", ec))
    return fail(fmt::format("cannot move the captured network to {}", moved.string()), "free some space");
  return moved;
}

Result<Json> check_capture(const Capture& capture, const Installation& place, const Environment& environment) {
  const auto files = files_of(capture, place);
  const auto answer = STRATA_TRY(answer_of(capture, files, {"--check"}, place, environment));
  std::error_code ec;
  fs::remove_all(files.incoming, ec);
  return outside::field(answer, "inputs");
}

}  // namespace strata::plan
