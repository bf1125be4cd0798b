// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "common/interrupt.hpp"
#include "worker/answer_line.hpp"
#include "worker/log_file.hpp"
#include "worker/process.hpp"

namespace strata::worker {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t tail_lines = 20;
constexpr auto farewell = 2000ms;
constexpr int most_extensions = 3;  // of a time-out, by progress

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{} (signal {})", name, number);
}

std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000.0);
}

// A program that could not get memory and gave up says so in its last lines.
bool speaks_of_memory(std::string log) {
  std::transform(log.begin(), log.end(), log.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<const char*, 5> words = {"bad_alloc", "memoryerror", "out of memory", "cannot allocate memory",
                                                "not enough memory"};
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return log.find(word) != std::string::npos; });
}

}  // namespace

std::string describe(const ExitStatus& exited) {
  return exited.signal ? fmt::format("killed by {}", signal_name(*exited.signal))
                       : fmt::format("exited with code {}", exited.code);
}

Worker::Worker(std::unique_ptr<Process> process) : process_(std::move(process)) {}
Worker::~Worker() = default;

tl::expected<std::unique_ptr<Worker>, Failure> Worker::start(const Launch& launch) {
  auto process = STRATA_TRY(Process::spawn(launch, true));
  return std::unique_ptr<Worker>(new Worker(std::move(process)));
}

// Ends the worker: its stream can no longer be trusted. The log is read after the end, when all of it is there.
Failure Worker::broken(State state, std::string what, std::string hint) {
  process_->kill_and_reap();
  failure_ = Failure{
      .state = state, .what = std::move(what), .hint = std::move(hint), .log_tail = process_->log_tail(tail_lines)};
  return *failure_;
}

Failure Worker::timed_out(std::string_view what, std::chrono::milliseconds timeout,
                          const ActiveTimeout& active_timeout) {
  if (active_timeout.grace_used_up())
    return broken(
        State::timeout,
        fmt::format("{}: the worker was stopped by a signal (SIGSTOP) that is not strata's and was not continued",
                    what),
        "a debugger or another program stopped it: run again");
  return broken(State::timeout, fmt::format("{} within {}", what, seconds(timeout)),
                "if the network is large or the machine is busy, allow more time (--timeout)");
}

// Whether a worker that ended so had too little memory: its last words say so, or it was killed by a signal that
// follows a failed allocation while it held much of what its limit allows. (RLIMIT_DATA also counts what was only
// reserved, so that half of the limit in use is near it.)
bool Worker::ran_out_of_memory(const ExitStatus& exited) const {
  const bool gave_up = !exited.signal || *exited.signal == SIGABRT || *exited.signal == SIGSEGV ||
                       *exited.signal == SIGBUS || *exited.signal == SIGTRAP || *exited.signal == SIGILL;
  if (!gave_up) {
    return false;
  }
  const auto limit = process_->data_limit();
  const bool near_limit = limit && process_->peak_bytes() >= *limit / 2;
  const bool may_be_anything = exited.signal && *exited.signal != SIGABRT;  // a fault in its code as well
  return speaks_of_memory(process_->log_tail(tail_lines)) ? !may_be_anything || near_limit
                                                          : exited.signal && near_limit;
}

// The process is gone, or is about to be: says how.
Failure Worker::died() {
  ActiveTimeout active_timeout(farewell, farewell);
  if (process_->wait_end(active_timeout) != Wait::ended) {
    return broken(State::failed, "the worker closed its output but lives on",
                  "only `bye` or the end of its input may end the stream (docs/protocol.md, rule 4)");
  }
  const ExitStatus exited = *process_->exited();
  process_->kill_and_reap();  // its use of memory is known from then on
  std::string what = "the worker was " + describe(exited);
  std::string hint;
  if (!exited.signal) {
    what = "the worker " + describe(exited) + " without an answer";
  } else if (*exited.signal == SIGKILL) {
    hint =
        "SIGKILL may be the kernel's out-of-memory killer (see dmesg): try a smaller batch or a machine with more "
        "memory";
  }
  State state = State::crashed;
  if (ran_out_of_memory(exited)) {
    state = State::out_of_memory;
    const auto limit = process_->data_limit();
    what += limit ? fmt::format(" after it ran out of memory, under the limit of {:.2g} GiB (--memory-limit)",
                                static_cast<double>(*limit) / (1 << 30))
                  : " after it ran out of memory";
    hint = limit ? "a higher --memory-limit, or a smaller batch" : "try a smaller batch";
  }
  return broken(state, std::move(what), std::move(hint));
}

tl::expected<std::string, Failure> Worker::send_line(std::string_view line, std::chrono::milliseconds timeout) {
  if (failure_) {
    return tl::unexpected(*failure_);
  }
  resume();
  ActiveTimeout active_timeout(timeout);
  std::string bytes(line);
  bytes += '\n';
  switch (process_->write_all(bytes, active_timeout)) {
    case Wait::ready:
      return std::string();
    case Wait::ended:
      return tl::unexpected(died());
    case Wait::interrupted:
      return tl::unexpected(broken(State::failed, "interrupted", ""));
    case Wait::timed_out:
      break;
  }
  return tl::unexpected(timed_out("the worker did not read a request", timeout, active_timeout));
}

tl::expected<std::string, Failure> Worker::receive_line(std::chrono::milliseconds timeout) {
  if (failure_) {
    return tl::unexpected(*failure_);
  }
  ActiveTimeout active_timeout(timeout);
  return next_line(active_timeout, timeout);
}

tl::expected<std::string, Failure> Worker::receive_answer(std::int64_t id, std::chrono::milliseconds timeout,
                                                          const ProgressCallback& on_progress) {
  ActiveTimeout active_timeout(timeout);
  std::string doing;
  for (int extensions = 0;;) {
    auto line = next_line(active_timeout, timeout);
    auto progress = line ? progress_in(*line, id) : std::nullopt;
    if (!progress) {
      return line;
    }
    if (*progress == doing) {
      continue;
    }
    doing = std::move(*progress);
    if (on_progress) {
      on_progress(doing);
    }
    if (extensions++ < most_extensions) {
      active_timeout = ActiveTimeout(timeout);
    }
  }
}

// `timeout`: what it was at first, for the sentence.
tl::expected<std::string, Failure> Worker::next_line(ActiveTimeout& active_timeout, std::chrono::milliseconds timeout) {
  for (;;) {
    if (auto line = process_->take_line()) {
      return *line;
    }
    if (process_->pending().size() > longest_line_bytes) {
      return tl::unexpected(broken(State::failed,
                                   fmt::format("the worker sent a line of more than {} MiB", longest_line_bytes >> 20),
                                   "tensors travel as files (docs/protocol.md, rule 7)"));
    }
    if (process_->output_closed()) {
      return tl::unexpected(died());
    }
    switch (process_->wait_output(active_timeout)) {
      case Wait::ready:
        break;
      case Wait::ended:
        return tl::unexpected(died());
      case Wait::interrupted:
        return tl::unexpected(broken(State::failed, "interrupted", ""));
      case Wait::timed_out:
        return tl::unexpected(timed_out("no answer", timeout, active_timeout));
    }
  }
}

tl::expected<Json, Failure> Worker::read_answer(const std::string& line, std::int64_t id, std::string_view op) {
  auto answer = parse_answer_line(line, id, op);
  if (!answer) {
    return tl::unexpected(
        broken(State::failed, answer.error(), "the level breaks docs/protocol.md: `strata level check` shows where"));
  }
  if (!answer->failure) {
    return std::move(answer->fields);
  }
  answer->failure->log_tail = process_->log_tail(tail_lines);
  return tl::unexpected(std::move(*answer->failure));
}

tl::expected<Json, Failure> Worker::call(std::string_view op, Json fields, std::chrono::milliseconds timeout,
                                         const ProgressCallback& on_progress) {
  if (failure_) {
    return tl::unexpected(*failure_);
  }
  if (interrupted().load()) {
    return tl::unexpected(broken(State::failed, "interrupted", ""));
  }
  if (process_->poll_output()) {
    return tl::unexpected(broken(
        State::failed,
        fmt::format("before {}: the worker sent something unasked: \"{}\"", op, printable(process_->pending(), 120)),
        "one line for each request (docs/protocol.md, rule 1); fd 1 must point at fd 2 (rule 2)"));
  }
  if (!fields.is_object()) {
    fields = Json::object();
  }
  const std::int64_t id = next_id_++;
  fields["id"] = id;
  fields["op"] = op;
  const auto sent = send_line(fields.dump(-1, ' ', false, Json::error_handler_t::replace), timeout);
  auto line = sent ? receive_answer(id, timeout, on_progress) : sent;
  if (!line) {
    if (failure_ && failure_->what != "interrupted") {
      failure_->what = fmt::format("{}: {}", op, failure_->what);
    }
    return tl::unexpected(failure_.value_or(line.error()));
  }
  return read_answer(*line, id, op);
}

void Worker::close_input() {
  process_->close_input();
}

std::optional<ExitStatus> Worker::wait_exit(std::chrono::milliseconds timeout) {
  ActiveTimeout active_timeout(timeout);
  process_->wait_end(active_timeout);
  return process_->exited();
}

void Worker::pause() {
  if (alive() && !process_->paused) {
    process_->signal_group(SIGSTOP);
    process_->paused = true;
  }
}

void Worker::resume() {
  if (process_->paused) {
    process_->signal_group(SIGCONT);
    process_->paused = false;
  }
}

pid_t Worker::pid() const {
  return process_->pid();
}
bool Worker::alive() const {
  return !failure_ && !process_->exited();
}
std::string Worker::log_tail(std::size_t lines) const {
  return process_->log_tail(lines);
}

void Worker::end() {
  if (!failure_ && !interrupted().load()) {
    resume();
    ActiveTimeout active_timeout(farewell, farewell);
    const std::string line = Json{{"id", next_id_++}, {"op", "bye"}}.dump() + "\n";
    if (process_->write_all(line, active_timeout) == Wait::ready) {
      process_->close_input();
      process_->wait_end(active_timeout);
    }
  }
  process_->kill_and_reap();
  if (!failure_) {
    failure_ = Failure{.state = State::failed, .what = "the worker was ended"};
  }
}

tl::expected<Finished, Failure> run_to_end(const Launch& launch, std::chrono::milliseconds timeout,
                                           const std::function<void(std::string_view)>& on_line) {
  const auto spawned = STRATA_TRY(Process::spawn(launch, false));
  Process& process = *spawned;
  ActiveTimeout active_timeout(timeout);
  Finished finished;
  Wait wait = Wait::ready;
  while (wait == Wait::ready) {
    wait = process.output_closed() ? process.wait_end(active_timeout) : process.wait_output(active_timeout);
    for (auto line = process.take_line(); line && !interrupted().load(); line = process.take_line()) {
      finished.stdout_text += *line + "\n";
      if (on_line) {
        on_line(*line);
      }
    }
    if (finished.stdout_text.size() + process.pending().size() > longest_line_bytes) {
      process.kill_and_reap();
      return tl::unexpected(Failure{.state = State::failed,
                                    .what = fmt::format("{} wrote more than {} MiB to its standard output",
                                                        launch.argv[0], longest_line_bytes >> 20),
                                    .log_tail = process.log_tail(tail_lines)});
    }
  }
  finished.stdout_text += process.pending();
  if (on_line && !process.pending().empty()) {
    on_line(process.pending());
  }
  process.kill_and_reap();
  finished.log_tail = process.log_tail(tail_lines);
  if (wait == Wait::interrupted) {
    return tl::unexpected(Failure{.state = State::failed, .what = "interrupted", .log_tail = finished.log_tail});
  }
  finished.timed_out = wait == Wait::timed_out;
  finished.exit_code = process.exited()->code;
  finished.signal = process.exited()->signal;
  return finished;
}

}  // namespace strata::worker
