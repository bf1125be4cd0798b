// SPDX-License-Identifier: Apache-2.0
#include "measure/measuring_mark.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>

namespace strata::measure {

MeasuringMark::MeasuringMark(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  // workers must not inherit it, or a run would seem to measure for as long as one of them lives
  file_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) return;
  char text[32];
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
    const auto end = std::to_chars(text, text + sizeof text, ::getpid()).ptr;
    // who reads before this is written gets no number, and says so
    if (::ftruncate(file_, 0) == 0) (void)!::pwrite(file_, text, static_cast<std::size_t>(end - text), 0);
    return;
  }
  if (errno == EWOULDBLOCK) {
    const auto got = ::pread(file_, text, sizeof text, 0);
    pid_t pid = 0;
    if (got > 0) std::from_chars(text, text + got, pid);
    other_ = pid > 0 ? pid : 0;
  }
  ::close(file_);
  file_ = -1;
}

MeasuringMark::~MeasuringMark() {
  if (file_ < 0) return;
  (void)!::ftruncate(file_, 0);
  ::close(file_);
}

}  // namespace strata::measure
