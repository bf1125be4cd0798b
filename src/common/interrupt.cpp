// SPDX-License-Identifier: Apache-2.0
#include "common/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace strata {
namespace {

int g_pipe[2] = {-1, -1};
volatile std::sig_atomic_t g_seen = 0;

extern "C" void on_interrupt(int signal_number) {
  const int saved_errno = errno;
  if (g_seen != 0) {
    // The person asked twice. The warden and PDEATHSIG end the workers; the store commits row by row.
    ::_exit(128 + signal_number);
  }
  g_seen = 1;
  interrupted().store(true);
  if (g_pipe[1] >= 0) {
    const char byte = 'i';
    [[maybe_unused]] const auto written = ::write(g_pipe[1], &byte, 1);
  }
  errno = saved_errno;
}

}  // namespace

std::atomic<bool>& interrupted() {
  static_assert(std::atomic<bool>::is_always_lock_free);
  static constinit std::atomic<bool> flag{false};
  return flag;
}

void install_interrupt_handler() {
  if (g_pipe[0] < 0 && ::pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    g_pipe[0] = g_pipe[1] = -1;  // the flag still works; waits notice it at their next tick
  }
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int interrupt_descriptor() {
  return g_pipe[0];
}

}  // namespace strata
