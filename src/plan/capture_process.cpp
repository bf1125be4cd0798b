// SPDX-License-Identifier: Apache-2.0
#include "plan/capture_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "common/outside.hpp"
#include "worker/log_file.hpp"

namespace strata::plan {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
constexpr std::size_t kTailLines = 20;

struct CaptureServer {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::unique_ptr<worker::Worker> worker;
};

// Never destroyed: what a Worker needs at its end may be gone before; the process ends with the driver all the same.
CaptureServer& capture_server() {
  static auto* instance = new CaptureServer;
  return *instance;
}

// The exit code that ends a capture's answers; nullopt: another line.
std::optional<int> ending_of(std::string_view line) {
  const auto answer = outside::parse(line, "exit_code");
  if (!answer || !answer->is_object() || !answer->contains("exit_code")) return std::nullopt;
  const auto& code = (*answer)["exit_code"];
  return code.is_number_integer() ? std::optional(code.get<int>()) : std::nullopt;
}

}  // namespace

tl::expected<worker::Finished, worker::Failure> run_in_kept_process(
    const worker::Launch& launch, const std::vector<std::string>& arguments, milliseconds timeout,
    const std::function<void(std::string_view)>& on_line) {
  auto& process = capture_server();
  if (!process.worker || !process.worker->alive() || process.argv != launch.argv || process.env != launch.env) {
    process.worker.reset();
    auto started = STRATA_TRY(worker::Worker::start(launch));
    process = {launch.argv, launch.env, std::move(started)};
  }
  const auto end = steady_clock::now() + timeout;
  const auto left = [&] {
    return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - steady_clock::now()));
  };
  worker::Finished finished;
  const auto given_up = [&](const worker::Failure& failure) -> tl::expected<worker::Finished, worker::Failure> {
    const auto exited = process.worker->wait_exit(milliseconds(0));
    process.worker.reset();
    if (failure.what == "interrupted") return tl::unexpected(failure);
    finished.timed_out = failure.state == State::timeout;
    finished.exit_code = exited && !exited->signal && exited->code != 0 ? exited->code : 1;
    if (exited) finished.signal = exited->signal;
    finished.log_tail = worker::tail_of_file(launch.log_path, kTailLines);
    return finished;
  };
  const worker::Json request{{"arguments", arguments}, {"log", launch.log_path}};
  if (auto sent = process.worker->send_line(request.dump(), left()); !sent) return given_up(sent.error());
  for (;;) {
    const auto line = process.worker->receive_line(left());
    if (!line) return given_up(line.error());
    if (const auto code = ending_of(*line)) {
      if (*code < 0)
        finished.signal = -*code;
      else
        finished.exit_code = *code;
      finished.log_tail = worker::tail_of_file(launch.log_path, kTailLines);
      return finished;
    }
    finished.stdout_text += *line + "\n";
    if (on_line) on_line(*line);
  }
}

}  // namespace strata::plan
