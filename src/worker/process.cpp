// SPDX-License-Identifier: Apache-2.0
#include "worker/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "common/interrupt.hpp"
#include "worker/warden.hpp"

namespace strata::worker {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto longest_tick = 500ms;

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

Patience::Patience(std::chrono::milliseconds limit) : last_(Clock::now()), left_(limit) {}

std::chrono::milliseconds Patience::tick() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(left_);
  return std::clamp<std::chrono::milliseconds>(left, 0ms, longest_tick);
}

void Patience::charge(bool stood_still) {
  const auto now = Clock::now();
  if (!stood_still) {
    // Far more than a tick between two looks: this process itself was stopped, and the child must not pay for it.
    left_ -= std::min<std::chrono::nanoseconds>(now - last_, 2 * longest_tick);
  }
  last_ = now;
}

bool Patience::over() const {
  return left_ <= 0ns;
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

bool Process::stood_still() const {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold anything, brackets and spaces too
  if (name_end == std::string::npos || name_end + 2 >= text.size()) {
    return false;
  }
  return text[name_end + 2] == 'T' || text[name_end + 2] == 't';
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
    exited_ = Exited{};  // not our child any more: somebody reaped it
    return true;
  }
  if (info.si_pid == 0) {
    return false;
  }
  exited_ = info.si_code == CLD_EXITED ? Exited{info.si_status, std::nullopt} : Exited{0, info.si_status};
  return true;
}

void Process::kill_and_reap() {
  if (reaped_ || pid_ < 0) {
    return;
  }
  check_exit();
  ::kill(-pid_, SIGKILL);  // helpers that outlived the child, too
  siginfo_t info = {};
  while (!exited_ && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  check_exit();
  warden::release(pid_);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
}

void Process::read_available() {
  std::array<char, 65536> chunk;
  while (output_ >= 0 && buffer_.size() <= longest_line_bytes) {
    const ssize_t got = ::read(output_, chunk.data(), chunk.size());
    if (got > 0) {
      buffer_.append(chunk.data(), static_cast<std::size_t>(got));
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
  return !buffer_.empty();
}

std::optional<std::string> Process::take_line() {
  const std::size_t end = buffer_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  searched_ = 0;
  return line;
}

// Sleeps until `descriptor` has `events` (ready), the child ended, an interrupt came or patience is over.
// A negative descriptor waits for the end alone.
Wait Process::wait_any(int descriptor, short events, Patience& patience) {
  for (;;) {
    if (interrupted().load()) {
      return Wait::interrupted;
    }
    std::array<pollfd, 3> waits = {{{descriptor, events, 0}, {pidfd_, POLLIN, 0}, {interrupt_descriptor(), POLLIN, 0}}};
    auto tick = patience.tick();
    if (pidfd_ < 0) {
      tick = std::min<std::chrono::milliseconds>(tick, 20ms);  // a kernel without pidfd
    }
    ::poll(waits.data(), waits.size(), static_cast<int>(tick.count()));
    if (waits[2].revents != 0 && !interrupted().load()) {
      std::array<char, 16> stale;  // somebody took the flag back
      [[maybe_unused]] const auto drained = ::read(interrupt_descriptor(), stale.data(), stale.size());
    }
    if (waits[0].revents != 0) {
      return Wait::ready;
    }
    if ((pidfd_ < 0 || waits[1].revents != 0) && check_exit()) {
      return Wait::ended;
    }
    patience.charge(stood_still());
    if (patience.over()) {
      return Wait::timed_out;
    }
  }
}

Wait Process::write_all(std::string_view bytes, Patience& patience) {
  while (!bytes.empty()) {
    if (input_ < 0) {
      return Wait::ended;
    }
    const ssize_t written = write_quietly(input_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      const Wait wait = wait_any(input_, POLLOUT, patience);
      if (wait != Wait::ready) {
        return wait;
      }
    } else if (errno != EINTR) {
      return Wait::ended;
    }
  }
  return Wait::ready;
}

Wait Process::wait_output(Patience& patience) {
  if (output_ < 0) {
    return Wait::ready;
  }
  const Wait wait = wait_any(output_, POLLIN, patience);
  if (wait == Wait::ready || wait == Wait::ended) {
    const std::size_t before = buffer_.size();
    read_available();
    if (wait == Wait::ended && buffer_.size() > before) {
      return Wait::ready;  // last words
    }
  }
  return wait;
}

Wait Process::wait_end(Patience& patience) {
  return check_exit() ? Wait::ended : wait_any(-1, 0, patience);
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

std::string tail_of_file(const std::string& path, std::size_t lines) {
  constexpr std::streamoff longest = 64 * 1024;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (path.empty() || !file) {
    return {};
  }
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - longest));
  std::string text(static_cast<std::size_t>(std::min(size, longest)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  std::size_t begin = text.size();
  for (std::size_t i = 0; i < lines && begin != std::string::npos && begin > 0; ++i) {
    begin = text.rfind('\n', begin - 1);
  }
  return printable(begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1), text.size());
}

}  // namespace strata::worker
