// SPDX-License-Identifier: Apache-2.0
// A child process with pipes: fork, exec, lines in, lines out, the end. It knows signals and descriptors and nothing of
// the protocol.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "worker/worker.hpp"

namespace strata::worker {

// A timeout that is paused while this process is stopped (Ctrl-Z). While the child is (a debugger, SIGSTOP from
// somebody else), only `grace` is waited in all.
class ActiveTimeout {
 public:
  explicit ActiveTimeout(std::chrono::milliseconds limit);  // grace: the limit, but at least 5 s
  ActiveTimeout(std::chrono::milliseconds limit, std::chrono::milliseconds grace);
  std::chrono::milliseconds tick() const;  // how long to sleep at most before asking again
  void charge(bool stopped);               // counts the time since the last call
  bool expired() const;
  bool grace_used_up() const;

 private:
  std::chrono::steady_clock::time_point last_;
  std::chrono::nanoseconds left_, grace_;
};

enum class Wait { ready, ended, interrupted, timed_out };

class Process {
 public:
  // `with_input`: standard input is a pipe from the driver; otherwise /dev/null.
  static tl::expected<std::unique_ptr<Process>, Failure> spawn(const Launch& launch, bool with_input);
  ~Process();  // SIGKILL to the group; reaps
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Wait write_all(std::string_view bytes, ActiveTimeout& active_timeout);  // ended: nobody reads any more
  Wait wait_output(
      ActiveTimeout& active_timeout);            // ready: bytes came, or the output was closed (then output_closed())
  Wait wait_end(ActiveTimeout& active_timeout);  // ended: exited() has a value
  bool poll_output();                            // takes what is there now; true if anything is buffered

  std::optional<std::string> take_line();  // without its newline; nullopt: no whole line yet
  std::string_view pending() const { return std::string_view(buffer_).substr(taken_); }  // what was read and not taken
  bool output_closed() const { return output_ < 0; }
  void close_input();

  void signal_group(int number) const;
  bool is_stopped() const;  // the child is stopped or traced
  void kill_and_reap();
  const std::optional<ExitStatus>& exited() const { return exited_; }
  pid_t pid() const { return pid_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }  // resident at most, of the child alone; 0 before its end
  // Processor time of the child and of those of its own that it waited for; 0 before its end.
  std::chrono::nanoseconds processor_time() const { return processor_time_; }
  std::optional<std::uint64_t> data_limit() const { return data_limit_; }
  std::string log_tail(std::size_t lines) const;
  bool paused = false;

 private:
  Process() = default;
  Wait wait_any(int descriptor, short events, ActiveTimeout& active_timeout);
  void read_available();
  bool check_exit();

  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, pidfd_ = -1;
  std::string log_path_, mark_;
  bool starts_others_ = false;
  int log_ = -1;
  std::string buffer_;
  std::size_t taken_ = 0;     // bytes of buffer_ that take_line() gave
  std::size_t searched_ = 0;  // bytes of buffer_ known to hold no newline
  std::uint64_t peak_bytes_ = 0;
  std::chrono::nanoseconds processor_time_{0};
  std::optional<std::uint64_t> data_limit_;
  std::optional<ExitStatus> exited_;
  bool reaped_ = false;
};

constexpr std::size_t longest_line_bytes = std::size_t{64} << 20;

// Text from outside made fit to show: valid UTF-8, no control characters but newline and tab, cut to `longest` bytes.
std::string printable(std::string_view text, std::size_t longest);

}  // namespace strata::worker
