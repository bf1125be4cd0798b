// SPDX-License-Identifier: Apache-2.0
// A lock between processes: held while the object lives, released by the system when the process dies.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace strata {

class FileLock {
 public:
  // Waits for whoever holds it. A file that cannot be made locks nothing: what follows will fail there and say why.
  explicit FileLock(const std::filesystem::path& path) : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
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

}  // namespace strata
