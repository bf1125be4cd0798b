// SPDX-License-Identifier: Apache-2.0
#include "worker/left_behind.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/process_begin.hpp"

namespace strata::worker::left_behind {
namespace {

constexpr int most_looks = 20;

std::set<pid_t> g_workers, g_others;
pid_t g_owner = -1;  // a process forked from this one has children of its own

// Children of this process in process groups of their own, zombies too.
std::vector<pid_t> children_apart() {
  std::vector<pid_t> out;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) {
      continue;
    }
    auto fields = stat_fields(name);
    std::string state;
    pid_t parent = 0, group = 0;
    fields >> state >> parent >> group;
    if (fields && parent == ::getpid() && group != ::getpgrp()) {
      out.push_back(pid);
    }
  }
  return out;
}

bool end_once() {
  bool ended = false;
  for (const pid_t pid : children_apart()) {
    if (g_others.contains(pid) || ::kill(pid, SIGKILL) != 0) {
      continue;
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    ended = true;
  }
  return ended;
}

}  // namespace

std::mutex& mutex() {
  static std::mutex one;
  return one;
}

void prepare() {
  if (g_owner == ::getpid()) {
    return;
  }
  g_owner = ::getpid();
  g_workers.clear();
  const auto before = children_apart();
  g_others = std::set(before.begin(), before.end());
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void add_worker(pid_t pid) {
  g_workers.insert(pid);
}

void add_helper(pid_t pid) {
  g_others.insert(pid);
}

void remove_worker(pid_t pid, bool starts_others) {
  const std::lock_guard lock(mutex());
  if (g_owner != ::getpid() || g_workers.erase(pid) == 0) {
    return;
  }
  if (starts_others) {
    for (const pid_t child : children_apart()) {
      if (!g_workers.contains(child)) {
        g_others.insert(child);
      }
    }
  }
  if (!g_workers.empty()) {
    return;
  }
  for (int look = 0; look < most_looks && end_once(); ++look) {
  }
}

}  // namespace strata::worker::left_behind
