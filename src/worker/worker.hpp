// SPDX-License-Identifier: Apache-2.0
// One worker process (docs/protocol.md): started in a process group of its own, spoken to a line at a time, stopped and
// continued, and never left behind: the group is killed when the Worker is destroyed and when the driver dies.
// Start workers from a thread that outlives them: the kernel ties PDEATHSIG to the thread that forked.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "common/result.hpp"
#include "common/state.hpp"

namespace strata::worker {

using Json = nlohmann::json;

// Why a worker has no result: the row's state, the reason, what to do, and the end of its log.
struct Failure {
  State state = State::failed;
  std::string what;
  std::string hint;
  std::string log_tail;
};

// That of a level by an error which the driver met.
inline Failure failed_by(const Error& error) {
  return {.state = State::failed, .what = error.what, .hint = error.hint};
}

// A program to start. `env` is added to the driver's; `log_path` receives standard error (empty: discarded).
struct Launch {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::string log_path;
  std::optional<std::uint64_t> data_limit_bytes;          // RLIMIT_DATA, set before exec
  std::vector<int> cpus;                                  // empty: all
  std::optional<std::vector<std::string>> writable = {};  // confined: may write below these folders only (confine.hpp)
  std::string hidden = {};                                // a folder whose files it may not read; empty: none
  bool discards_output = false;                           // of its standard output, which else is read through a pipe
  bool starts_others = false;  // what it leaves behind is not ours to end: the jobs that sbatch starts
};

struct ExitStatus {
  int code = 0;               // meaningful when signal is empty
  std::optional<int> signal;  // what killed it
};

// A worker after the end: "exited with code 3", "killed by SIGSEGV (signal 11)".
std::string describe(const ExitStatus& exited);

// Sees what a worker says that it is doing before it answers (docs/protocol.md, rule 1).
using ProgressCallback = std::function<void(const std::string&)>;

class ActiveTimeout;
class Process;  // pipes, pidfd and process group; src/worker/process.hpp

class Worker {
 public:
  // Forks and executes; `unavailable` with the path if the program cannot be executed. Sends nothing.
  static tl::expected<std::unique_ptr<Worker>, Failure> start(const Launch& launch);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // One request and its answer. Adds `id` and `op` to `fields` (an object). Continues a stopped worker. The time-out
  // does not run while the driver is stopped, and only up to as long again while somebody else stopped the worker; it
  // starts again where the worker says that it does something else than before, three times at most. A broken stream or
  // a time-out ends the worker: later calls repeat that failure.
  tl::expected<Json, Failure> call(std::string_view op, Json fields, std::chrono::milliseconds timeout,
                                   const ProgressCallback& on_progress = {});

  // For the conformance suite: any bytes out (a newline is added), one line back, no rules applied to either.
  tl::expected<std::string, Failure> send_line(std::string_view line, std::chrono::milliseconds timeout);
  tl::expected<std::string, Failure> receive_line(std::chrono::milliseconds timeout);
  void close_input();
  std::optional<ExitStatus> wait_exit(std::chrono::milliseconds timeout);  // nullopt: still running

  void pause();   // SIGSTOP to the process group
  void resume();  // SIGCONT

  pid_t pid() const;
  bool alive() const;  // false once it failed or ended
  std::string log_tail(std::size_t lines = 20) const;
  void end();  // bye, up to 2 s for it to go, then SIGKILL to the group; reaps

 private:
  explicit Worker(std::unique_ptr<Process> process);
  Failure broken(State state, std::string what, std::string hint);
  Failure died();
  Failure timed_out(std::string_view what, std::chrono::milliseconds timeout, const ActiveTimeout& active_timeout);
  bool ran_out_of_memory(const ExitStatus& exited) const;
  tl::expected<std::string, Failure> next_line(ActiveTimeout& active_timeout, std::chrono::milliseconds timeout);
  tl::expected<std::string, Failure> receive_answer(std::int64_t id, std::chrono::milliseconds timeout,
                                                    const ProgressCallback& on_progress);
  tl::expected<Json, Failure> read_answer(const std::string& line, std::int64_t id, std::string_view op);
  std::unique_ptr<Process> process_;
  std::optional<Failure> failure_;
  std::int64_t next_id_ = 1;
};

// A command that ran to its end.
struct Finished {
  int exit_code = 0;
  std::optional<int> signal;
  bool timed_out = false;
  std::string stdout_text;
  std::string log_tail;
};

// For capture and prepare: standard output is captured (64 MiB at most), standard error goes to the log. `on_line` sees
// every line of standard output as it comes. Failure: cannot be executed, interrupted, or too much output.
tl::expected<Finished, Failure> run_to_end(const Launch& launch, std::chrono::milliseconds timeout,
                                           const std::function<void(std::string_view)>& on_line = {});

}  // namespace strata::worker
