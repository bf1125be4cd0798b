// SPDX-License-Identifier: Apache-2.0
#include "worker/marked.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace strata::worker {
namespace {

constexpr int most_looks = 20;

// What the kernel writes for getdents64.
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

// Whether an entry of the environment behind `file` begins with the mark.
bool has_entry(int file, const char* mark, std::size_t length) {
  std::array<char, 4096> chunk;
  std::size_t matched = 0;
  bool at_start = true;  // of an entry, or matching since there
  for (;;) {
    const ssize_t got = ::read(file, chunk.data(), chunk.size());
    if (got <= 0) {
      return false;
    }
    for (ssize_t i = 0; i < got; ++i) {
      const char c = chunk[static_cast<std::size_t>(i)];
      at_start = at_start && c == mark[matched];
      matched = at_start ? matched + 1 : 0;
      if (matched == length) {
        return true;
      }
      if (c == '\0') {
        at_start = true;
        matched = 0;
      }
    }
  }
}

bool is_marked(int proc, const char* name, const char* mark, std::size_t length) {
  std::array<char, 64> path = {};
  std::size_t at = 0;
  for (; name[at] != '\0'; ++at) {
    if (name[at] < '0' || name[at] > '9' || at > 20) {
      return false;
    }
    path[at] = name[at];
  }
  std::memcpy(path.data() + at, "/environ", sizeof "/environ");
  const int file = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  const bool result = has_entry(file, mark, length);
  ::close(file);
  return result;
}

// How many were found and sent SIGKILL.
int look_once(const char* mark, std::size_t length) {
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) {
    return 0;
  }
  int result = 0;
  alignas(Entry) std::array<char, 16384> entries;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, proc, entries.data(), entries.size());
    if (got <= 0) {
      break;
    }
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(entries.data() + at);
      at += entry->length;
      if (!is_marked(proc, entry->name, mark, length)) {
        continue;
      }
      pid_t pid = 0;
      for (const char* digit = entry->name; *digit != '\0'; ++digit) {
        pid = pid * 10 + (*digit - '0');
      }
      result += pid > 1 && pid != ::getpid() && ::kill(pid, SIGKILL) == 0 ? 1 : 0;
    }
  }
  ::close(proc);
  return result;
}

}  // namespace

const std::string& common_mark() {
  static const std::string mark = [] {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) {
      number = static_cast<std::uint64_t>(::getpid()) << 32 ^ static_cast<std::uint64_t>(std::time(nullptr));
    }
    return fmt::format("STRATA_WORKER={:016x}.", number);
  }();
  return mark;
}

std::string next_mark() {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}{}.", common_mark(), count++);
}

void kill_marked(const char* mark) {
  const std::size_t length = std::strlen(mark);
  for (int look = 0; length > 0 && look < most_looks && look_once(mark, length) > 0; ++look) {
    const timespec moment = {0, 1'000'000};  // for the kernel to take their memory away; one may just have forked
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace strata::worker
