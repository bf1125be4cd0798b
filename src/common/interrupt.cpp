// SPDX-License-Identifier: Apache-2.0
#include "common/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

namespace strata {
namespace {

int g_pipe[2] = {-1, -1};
volatile std::sig_atomic_t g_seen = 0;

extern "C" void on_interrupt(int signal_number) {
  const int saved_errno = errno;
  if (g_seen != 0) {
    // The person asked twice. The supervisor and PDEATHSIG end the workers; the store commits row by row.
    ::_exit(128 + signal_number);
  }
  g_seen = signal_number;
  interrupted().store(true);
  if (g_pipe[1] >= 0) {
    const char byte = 'i';
    [[maybe_unused]] const auto written = ::write(g_pipe[1], &byte, 1);
  }
  errno = saved_errno;
}

extern "C" void on_bus_error(int signal_number) {
  constexpr std::string_view sentence =
      "error: a file was made shorter while strata was reading it (a captured network in the cache?)\n"
      "  try: run again; what was measured is stored: ./strata show last\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  (void)signal_number;
  ::_exit(1);
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = flags;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

int interrupt_exit_code() {
  return 128 + (g_seen != 0 ? static_cast<int>(g_seen) : SIGINT);
}

std::atomic<bool>& interrupted() {
  static_assert(std::atomic<bool>::is_always_lock_free);
  static constinit std::atomic<bool> flag{false};
  return flag;
}

void cancel_running() {
  interrupted().store(true);
  const char byte = 'c';
  if (g_pipe[1] >= 0) [[maybe_unused]]
    const auto written = ::write(g_pipe[1], &byte, 1);
}

void cancel_over() {
  if (g_seen != 0) return;
  char byte = 0;
  while (g_pipe[0] >= 0 && ::read(g_pipe[0], &byte, 1) == 1) {
  }
  interrupted().store(false);
  if (g_seen != 0) interrupted().store(true);  // it came meanwhile
}

void install_interrupt_handler() {
  if (g_pipe[0] < 0 && ::pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    g_pipe[0] = g_pipe[1] = -1;  // the flag still works; waits notice it at their next tick
  }
  handle(SIGINT, on_interrupt, SA_RESTART);
  handle(SIGTERM, on_interrupt, SA_RESTART);
  struct sigaction before = {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    handle(SIGHUP, on_interrupt, SA_RESTART);
  handle(SIGBUS, on_bus_error, 0);
  ::signal(SIGPIPE, SIG_IGN);
}

int interrupt_descriptor() {
  return g_pipe[0];
}

}  // namespace strata
