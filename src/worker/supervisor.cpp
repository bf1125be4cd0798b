// SPDX-License-Identifier: Apache-2.0
#include "worker/supervisor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "worker/left_behind.hpp"
#include "worker/marked.hpp"

namespace strata::worker::supervisor {
namespace {

struct Message {
  pid_t group;
  bool guarded;
};

int g_line = -1;  // the driver's end
pid_t g_supervisor = -1;
pid_t g_owner = -1;  // a process forked from the driver without exec must not end the driver's supervisor
std::mutex g_mutex;

// Runs in the supervisor: no allocation and no locks, since it was forked from a process that may have had threads.
[[noreturn]] void watch(int line, const char* mark) {
  std::array<pid_t, 1024> groups = {};
  Message message = {};
  for (;;) {
    const ssize_t got = ::read(line, &message, sizeof message);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got != static_cast<ssize_t>(sizeof message)) {
      break;  // the last writer is gone
    }
    const pid_t from = message.guarded ? 0 : message.group;
    const pid_t to = message.guarded ? message.group : 0;
    for (pid_t& slot : groups) {
      if (slot == from) {
        slot = to;
        break;
      }
    }
  }
  for (const pid_t group : groups) {
    if (group > 1) {
      ::kill(-group, SIGKILL);
    }
  }
  kill_marked(mark);  // what left the groups
  ::_exit(0);
}

void send(Message message) {
  if (g_line < 0) {
    return;
  }
  while (::send(g_line, &message, sizeof message, MSG_NOSIGNAL) < 0 &&
         errno == EINTR) {  // a supervisor that was killed must not kill the driver by SIGPIPE
  }
}

// Ends the supervisor with the driver, so that no zombie waits for an init that may not reap.
struct AtExit {
  ~AtExit() {
    if (g_line >= 0 && g_owner == ::getpid()) {
      ::close(g_line);
      g_line = -1;
      int status = 0;
      while (::waitpid(g_supervisor, &status, 0) < 0 && errno == EINTR) {
      }
    }
  }
};

}  // namespace

void ensure() {
  const std::lock_guard lock(g_mutex);
  if (g_line >= 0 && g_owner == ::getpid()) {
    return;
  }
  if (g_line >= 0) {
    ::close(g_line);
    g_line = -1;
  }
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return;
  }
  const char* mark = common_mark().c_str();  // made before the fork
  const std::lock_guard children(left_behind::mutex());
  left_behind::prepare();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();  // neither Ctrl-C nor a kill of the driver's group reaches it
    ::prctl(PR_SET_NAME, "strata-watcher");
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    ::dup2(ends[0], 0);
    ::close_range(1, ~0U, 0);  // the driver's output and files are not the supervisor's to hold open
    watch(0, mark);
  }
  ::close(ends[0]);
  if (child < 0) {
    ::close(ends[1]);
    return;
  }
  left_behind::add_helper(child);
  const int raised = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  ::close(ends[1]);
  g_line = raised;
  g_supervisor = child;
  g_owner = ::getpid();
  static const AtExit at_exit;
}

void guard(pid_t group) {
  send({group, true});
}
void release(pid_t group) {
  send({group, false});
}

}  // namespace strata::worker::supervisor
