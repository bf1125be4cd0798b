// SPDX-License-Identifier: Apache-2.0
// A lock between processes: held while the object lives, released by the system when the process dies.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "common/interrupt.hpp"

namespace strata {

class FileLock {
 public:
  // Waits for whoever holds it, until this process is interrupted. A file that cannot be made locks nothing: what
  // follows will fail there and say why. `waiting` is called once, if somebody else holds it. A folder is locked
  // itself.
  explicit FileLock(const std::filesystem::path& path, const std::function<void()>& waiting = {})
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0 && errno == EISDIR) file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    for (bool notified = false; file_ >= 0 && !interrupted().load();) {
      if (flock(file_, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) return;
      if (!notified && waiting) waiting();
      notified = true;
      pollfd interrupt{interrupt_descriptor(), POLLIN, 0};
      poll(&interrupt, 1, 100);
    }
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

// Holds a folder, together with other processes, until this one ends; true: nobody holds it alone (`alone`: at all).
inline bool hold_folder(const std::filesystem::path& folder, bool alone = false) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return file < 0 || flock(file, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace strata
