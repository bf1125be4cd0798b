// SPDX-License-Identifier: Apache-2.0
#include "worker/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "common/interrupt.hpp"
#include "common/process_begin.hpp"
#include "worker/left_behind.hpp"
#include "worker/log_file.hpp"
#include "worker/marked.hpp"
#include "worker/supervisor.hpp"

namespace strata::worker {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto longest_tick = 500ms;
constexpr auto least_grace = 5000ms;
constexpr std::size_t most_at_once = std::size_t{1} << 20;  // read before somebody looks at the clock again

// A write to a pipe whose reader died raises SIGPIPE, which must end neither strata nor whoever linked it.
ssize_t write_quietly(int descriptor, const char* bytes, std::size_t count) {
  sigset_t pipe_signal, before, pending;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::sigpending(&pending);
  const bool was_pending = ::sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = ::write(descriptor, bytes, count);
  const int error = errno;
  if (written < 0 && error == EPIPE && !was_pending) {
    const timespec none = {0, 0};
    while (::sigtimedwait(&pipe_signal, nullptr, &none) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

}  // namespace

ActiveTimeout::ActiveTimeout(std::chrono::milliseconds limit)
    : ActiveTimeout(limit, std::max<std::chrono::milliseconds>(limit, least_grace)) {}

ActiveTimeout::ActiveTimeout(std::chrono::milliseconds limit, std::chrono::milliseconds grace)
    : last_(Clock::now()), left_(limit), grace_(grace) {}

std::chrono::milliseconds ActiveTimeout::tick() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(left_);
  return std::clamp<std::chrono::milliseconds>(left, 0ms, longest_tick);
}

void ActiveTimeout::charge(bool stopped) {
  const auto now = Clock::now();
  // Far more than a tick between two looks: this process itself was stopped, and the child must not pay for it.
  (stopped ? grace_ : left_) -= std::min<std::chrono::nanoseconds>(now - last_, 2 * longest_tick);
  last_ = now;
}

bool ActiveTimeout::expired() const {
  return left_ <= 0ns || grace_used_up();
}

bool ActiveTimeout::grace_used_up() const {
  return grace_ <= 0ns;
}

Process::~Process() {
  kill_and_reap();
  close_input();
  if (output_ >= 0) {
    ::close(output_);
  }
  if (pidfd_ >= 0) {
    ::close(pidfd_);
  }
  if (log_ >= 0) {
    ::close(log_);
  }
}

void Process::signal_group(int number) const {
  if (!reaped_ && pid_ > 1) {
    ::kill(-pid_, number);
  }
}

void Process::close_input() {
  if (input_ >= 0) {
    ::close(input_);
    input_ = -1;
  }
}

bool Process::is_stopped() const {
  char state = 0;
  stat_fields(std::to_string(pid_)) >> state;
  return state == 'T' || state == 't';
}

// Looks for the end without reaping: while the zombie stands, nobody else can get its process group's number.
bool Process::check_exit() {
  if (exited_) {
    return true;
  }
  siginfo_t info = {};
  int rc = 0;
  while ((rc = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT)) < 0 && errno == EINTR) {
  }
  if (rc < 0) {
    exited_ = ExitStatus{};  // not our child any more: somebody reaped it
    return true;
  }
  if (info.si_pid == 0) {
    return false;
  }
  exited_ = info.si_code == CLD_EXITED ? ExitStatus{info.si_status, std::nullopt} : ExitStatus{0, info.si_status};
  return true;
}

void Process::kill_and_reap() {
  if (reaped_ || pid_ < 0) {
    return;
  }
  check_exit();
  ::kill(-pid_, SIGKILL);      // helpers that outlived the child, too
  kill_marked(mark_.c_str());  // and those that left its process group
  siginfo_t info = {};
  while (!exited_ && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  check_exit();
  supervisor::release(pid_);
  int status = 0;
  rusage used = {};
  while (::wait4(pid_, &status, 0, &used) < 0 && errno == EINTR) {
  }
  peak_bytes_ = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  for (const auto& part : {used.ru_utime, used.ru_stime})
    processor_time_ += std::chrono::seconds(part.tv_sec) + std::chrono::microseconds(part.tv_usec);
  reaped_ = true;
  left_behind::remove_worker(pid_, starts_others_);
  shorten_log(log_);
}

// At most `most_at_once`: a child that writes without end must not keep this process from its clock.
void Process::read_available() {
  std::array<char, 65536> chunk;
  for (std::size_t now = 0; output_ >= 0 && now < most_at_once && pending().size() <= longest_line_bytes;) {
    const ssize_t got = ::read(output_, chunk.data(), chunk.size());
    if (got > 0) {
      buffer_.append(chunk.data(), static_cast<std::size_t>(got));
      now += static_cast<std::size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      ::close(output_);
      output_ = -1;
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

bool Process::poll_output() {
  read_available();
  return !pending().empty();
}

std::optional<std::string> Process::take_line() {
  const std::size_t end = buffer_.find('\n', std::max(searched_, taken_));
  if (end == std::string::npos) {
    buffer_.erase(0, taken_);  // once for all lines that were taken
    taken_ = 0;
    searched_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(taken_, end - taken_);
  taken_ = searched_ = end + 1;
  return line;
}

// Sleeps until `descriptor` has `events` (ready), the child ended, an interrupt came or the timeout has expired.
// A negative descriptor waits for the end alone.
Wait Process::wait_any(int descriptor, short events, ActiveTimeout& active_timeout) {
  for (;;) {
    if (interrupted().load()) {
      return Wait::interrupted;
    }
    std::array<pollfd, 3> waits = {{{descriptor, events, 0}, {pidfd_, POLLIN, 0}, {interrupt_descriptor(), POLLIN, 0}}};
    auto tick = active_timeout.tick();
    if (pidfd_ < 0) {
      tick = std::min<std::chrono::milliseconds>(tick, 20ms);  // a kernel without pidfd
    }
    ::poll(waits.data(), waits.size(), static_cast<int>(tick.count()));
    if (waits[2].revents != 0 && !interrupted().load()) {
      std::array<char, 16> stale;  // somebody took the flag back
      [[maybe_unused]] const auto drained = ::read(interrupt_descriptor(), stale.data(), stale.size());
    }
    shorten_log(log_);
    if (waits[0].revents != 0) {
      active_timeout.charge(false);  // an answer that comes byte by byte has no more time than another
      return active_timeout.expired() ? Wait::timed_out : Wait::ready;
    }
    if ((pidfd_ < 0 || waits[1].revents != 0) && check_exit()) {
      return Wait::ended;
    }
    active_timeout.charge(is_stopped());
    if (active_timeout.expired()) {
      return Wait::timed_out;
    }
  }
}

Wait Process::write_all(std::string_view bytes, ActiveTimeout& active_timeout) {
  while (!bytes.empty()) {
    if (input_ < 0) {
      return Wait::ended;
    }
    const ssize_t written = write_quietly(input_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      const Wait wait = wait_any(input_, POLLOUT, active_timeout);
      if (wait != Wait::ready) {
        return wait;
      }
    } else if (errno != EINTR) {
      return Wait::ended;
    }
  }
  return Wait::ready;
}

Wait Process::wait_output(ActiveTimeout& active_timeout) {
  if (output_ < 0) {
    return Wait::ready;
  }
  const Wait wait = wait_any(output_, POLLIN, active_timeout);
  if (wait == Wait::ready || wait == Wait::ended) {
    const std::size_t before = buffer_.size();
    read_available();
    if (wait == Wait::ended && buffer_.size() > before) {
      return Wait::ready;  // last words
    }
  }
  return wait;
}

Wait Process::wait_end(ActiveTimeout& active_timeout) {
  return check_exit() ? Wait::ended : wait_any(-1, 0, active_timeout);
}

std::string Process::log_tail(std::size_t lines) const {
  return tail_of_file(log_path_, lines);
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string out(text.substr(0, longest));
  for (char& c : out) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      c = ' ';
    }
  }
  // nlohmann's dump knows UTF-8 already: it replaces what is not.
  const std::string quoted = Json(out).dump(-1, ' ', false, Json::error_handler_t::replace);
  out = Json::parse(quoted).get<std::string>();
  return text.size() > longest ? out + "..." : out;
}

}  // namespace strata::worker
