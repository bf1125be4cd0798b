// SPDX-License-Identifier: Apache-2.0
#include "common/confine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

namespace strata {
namespace fs = std::filesystem;
namespace {

// The kernel's interface (include/uapi/linux/landlock.h), whose header on a build machine may be older than its kernel.
constexpr long kCreate = 444, kAdd = 445, kRestrict = 446;
struct Rules {
  std::uint64_t files, network, scoped;
};
struct [[gnu::packed]] BelowFolder {
  std::uint64_t allowed;
  std::int32_t folder;
};
constexpr int kBelowFolder = 1;
constexpr std::uint32_t kAskVersion = 1;
constexpr std::uint64_t kWrite = 1U << 1, kRemoveFolder = 1U << 4, kRemoveFile = 1U << 5, kMakeDevice = 1U << 6,
                        kMakeFolder = 1U << 7, kMakeFile = 1U << 8, kMakeSocket = 1U << 9, kMakeFifo = 1U << 10,
                        kMakeBlock = 1U << 11, kMakeLink = 1U << 12, kMove = 1U << 13, kTruncate = 1U << 14;
constexpr std::uint64_t kBind = 1U << 0, kConnect = 1U << 1;
constexpr std::uint64_t kAbstractSockets = 1U << 0, kSignals = 1U << 1;

std::uint64_t file_rights(int version) {
  std::uint64_t all = kWrite | kRemoveFolder | kRemoveFile | kMakeDevice | kMakeFolder | kMakeFile | kMakeSocket |
                      kMakeFifo | kMakeBlock | kMakeLink;
  if (version >= 2) all |= kMove;
  if (version >= 3) all |= kTruncate;
  return all;
}

// What programs write to besides files: CUDA's devices are opened for writing, too.
std::vector<std::string> devices() {
  std::vector<std::string> paths{"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                 "/dev/urandom", "/dev/tty",  "/dev/shm"};
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/dev", ec))
    if (entry.path().filename().string().starts_with("nvidia")) paths.push_back(entry.path().string());
  return paths;
}

// False with errno. A path that is not there allows nothing.
bool allow(int rules, const std::string& path, std::uint64_t rights) {
  const int folder = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (folder < 0) return errno == ENOENT;
  struct stat about = {};
  if (::fstat(folder, &about) == 0 && !S_ISDIR(about.st_mode)) rights &= kWrite | kTruncate;
  const BelowFolder rule{rights, folder};
  const bool good = ::syscall(kAdd, rules, kBelowFolder, &rule, 0U) == 0;
  const int error = errno;
  ::close(folder);
  errno = error;
  return good;
}

}  // namespace

Landlock landlock() {
  const long version = ::syscall(kCreate, nullptr, 0UL, kAskVersion);
  if (version > 0) return {static_cast<int>(version), {}};
  return {0, errno == EOPNOTSUPP ? "the kernel's Landlock is switched off (its parameter lsm= leaves it out)"
             : errno == ENOSYS   ? "the kernel has no Landlock (Linux 5.13 or newer has)"
                                 : fmt::format("Landlock cannot be used: {}", std::strerror(errno))};
}

Result<int> make_confinement(const std::vector<std::string>& writable) {
  const int version = landlock().version;
  if (version == 0) return -1;
  Rules wanted{file_rights(version), version >= 4 ? kBind | kConnect : 0,
               version >= 6 ? kAbstractSockets | kSignals : 0};
  const std::size_t size = version >= 6 ? sizeof wanted : version >= 4 ? 2 * sizeof wanted.files : sizeof wanted.files;
  const int rules = static_cast<int>(::syscall(kCreate, &wanted, size, 0U));
  const auto refused = [&](const std::string& what) {
    const int error = errno;
    if (rules >= 0) ::close(rules);
    return fail(fmt::format("the process for the model file cannot be confined: {}: {}", what, std::strerror(error)),
                "`strata doctor` says what this machine has");
  };
  if (rules < 0) return refused("no rules");
  for (const auto& path : writable)
    if (!allow(rules, path, wanted.files)) return refused(path);
  for (const auto& path : devices())
    if (!allow(rules, path, wanted.files & ~(kMakeDevice | kMakeBlock))) return refused(path);
  return rules;
}

bool enter_confinement(int rules) {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(kRestrict, rules, 0U) == 0;
}

}  // namespace strata
