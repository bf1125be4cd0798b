// SPDX-License-Identifier: Apache-2.0
#include "common/temporary.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace strata {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLock = ".in-use";  // locked while its owner lives

// The name that PyTorch gives its folder in TMPDIR: Python's getpass.getuser(), without what a file name must not have.
std::string pytorch_folder() {
  std::string user;
  for (const char* name : {"LOGNAME", "USER", "LNAME", "USERNAME"})
    if (const char* value = std::getenv(name); user.empty() && value != nullptr) user = value;
  if (user.empty())
    if (const passwd* entry = ::getpwuid(::getuid())) user = entry->pw_name;
  for (char& letter : user)
    if (std::strchr("\\/:*?\"<>|", letter) != nullptr) letter = '_';
  return "torchinductor_" + user;
}

void remove_left_overs(const fs::path& parent) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(parent, ec)) {
    const int lock = ::open((entry.path() / kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) continue;  // one that is being made
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ec);
    ::close(lock);
  }
}

class Folder {
 public:
  explicit Folder(const fs::path& cache) : owner_(::getpid()) {
    const fs::path parent = cache / "tmp";
    std::error_code ec;
    fs::create_directories(parent, ec);
    remove_left_overs(parent);
    std::string pattern = (parent / "XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      error_ = std::strerror(errno);
      return;
    }
    path_ = pattern;
    lock_ = ::open((path_ / kLock).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (lock_ >= 0) ::flock(lock_, LOCK_EX);
    const fs::path headers = cache / "headers";
    ::mkdir(headers.c_str(), 0700);
    fs::create_directory_symlink(headers, path_ / pytorch_folder(), ec);  // without it they are compiled once a run
  }
  ~Folder() {
    std::error_code ec;
    if (!path_.empty() && owner_ == ::getpid()) fs::remove_all(path_, ec);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }
  const std::string& error() const { return error_; }

 private:
  fs::path path_;
  std::string error_;
  pid_t owner_;
  int lock_ = -1;
};

}  // namespace

Result<std::string> temporary_folder(const fs::path& cache) {
  static std::mutex mutex;
  static std::map<fs::path, Folder> folders;
  const std::lock_guard hold(mutex);
  const auto& folder = folders.try_emplace(cache, cache).first->second;
  if (folder.path().empty())
    return fail(
        fmt::format("cannot make a folder for temporary files in {}: {}", (cache / "tmp").string(), folder.error()),
        "free some space, or set STRATA_CACHE to a folder that can be written");
  return folder.path().string();
}

}  // namespace strata
