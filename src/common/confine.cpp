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
constexpr std::uint64_t kWrite = 1U << 1, kRead = 1U << 2, kRemoveFolder = 1U << 4, kRemoveFile = 1U << 5,
                        kMakeDevice = 1U << 6, kMakeFolder = 1U << 7, kMakeFile = 1U << 8, kMakeSocket = 1U << 9,
                        kMakeFifo = 1U << 10, kMakeBlock = 1U << 11, kMakeLink = 1U << 12, kMove = 1U << 13,
                        kTruncate = 1U << 14;
constexpr std::uint64_t kBind = 1U << 0, kConnect = 1U << 1;
constexpr std::uint64_t kAbstractSockets = 1U << 0, kSignals = 1U << 1;
// From this version on it can be allowed to move files between folders, which any rules forbid otherwise.
constexpr int kHides = 2;

std::uint64_t writing_rights(int version) {
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

enum class Links { followed, themselves };

// False with errno. A path that is not there allows nothing; nor does a neighbour that cannot be opened, which nobody
// can read then.
bool allow(int rules, const std::string& path, std::uint64_t rights, Links links = Links::followed) {
  const bool neighbour = links == Links::themselves;
  const int folder = ::open(path.c_str(), O_PATH | O_CLOEXEC | (neighbour ? O_NOFOLLOW : 0));
  if (folder < 0) return errno == ENOENT || (neighbour && errno != EMFILE && errno != ENFILE && errno != ENOMEM);
  struct stat about = {};
  if (::fstat(folder, &about) == 0 && !S_ISDIR(about.st_mode)) rights &= kWrite | kRead | kTruncate;
  const BelowFolder rule{rights, folder};
  const bool good = ::syscall(kAdd, rules, kBelowFolder, &rule, 0U) == 0;
  const int error = errno;
  ::close(folder);
  errno = error;
  return good;
}

// Reading everywhere but below `hidden`. A right that a folder has cannot be taken from one below it, so that the rules
// go down to it and name its neighbours on the way; links among these are followed to where they lead, and judged
// there. Empty, or the path that failed, with errno.
std::string allow_reading_beside(int rules, const fs::path& hidden) {
  fs::path at = "/";
  for (const auto& part : hidden.relative_path()) {
    std::error_code ec;
    for (fs::directory_iterator entry(at, ec), end; !ec && entry != end; entry.increment(ec)) {
      std::error_code gone;
      if (entry->path().filename() == part || entry->is_symlink(gone)) continue;
      if (!allow(rules, entry->path().string(), kRead, Links::themselves)) return entry->path().string();
    }
    if (ec) {
      errno = ec.value();
      return at.string();
    }
    at /= part;
  }
  return {};
}

}  // namespace

Landlock landlock() {
  const long version = ::syscall(kCreate, nullptr, 0UL, kAskVersion);
  if (version > 0) return {static_cast<int>(version), {}};
  return {0, errno == EOPNOTSUPP ? "the kernel's Landlock is switched off (its parameter lsm= leaves it out)"
             : errno == ENOSYS   ? "the kernel has no Landlock (Linux 5.13 or newer has)"
                                 : fmt::format("Landlock cannot be used: {}", std::strerror(errno))};
}

Result<int> make_confinement(const Confinement& confined) {
  const auto have = landlock();
  const bool hides = !confined.hidden.empty(), writes = confined.writable.has_value();
  if (hides && have.version < kHides)
    return fail(have.version == 0 ? have.why_not : "hiding a folder takes Linux 5.19 or newer", "");
  if (have.version == 0) return -1;
  Rules attributes{(writes ? writing_rights(have.version) : 0) | (hides ? kRead | kMove : 0),
                   writes && have.version >= 4 ? kBind | kConnect : 0,
                   writes && have.version >= 6 ? kAbstractSockets | kSignals : 0};
  const std::size_t size = have.version >= 6   ? sizeof attributes
                           : have.version >= 4 ? 2 * sizeof attributes.files
                                               : sizeof attributes.files;
  const int rules = static_cast<int>(::syscall(kCreate, &attributes, size, 0U));
  const auto refused = [&](const std::string& what) {
    const int error = errno;
    if (rules >= 0) ::close(rules);
    return fail(fmt::format("a process cannot be confined: {}: {}", what, std::strerror(error)),
                "`strata doctor` says what this machine has");
  };
  if (rules < 0) return refused("no rules");
  if (writes) {
    for (const auto& path : *confined.writable)
      if (!allow(rules, path, attributes.files)) return refused(path);
    for (const auto& path : devices())
      if (!allow(rules, path, attributes.files & ~(kMakeDevice | kMakeBlock))) return refused(path);
  }
  if (!hides) return rules;
  if (!writes && !allow(rules, "/", kMove)) return refused("/");
  std::error_code ec;
  const auto hidden = fs::canonical(confined.hidden, ec);
  if (ec) {
    errno = ec.value();
    return refused(confined.hidden.string());
  }
  if (const auto failed = allow_reading_beside(rules, hidden); !failed.empty()) return refused(failed);
  return rules;
}

std::string why_not_hidden(const fs::path& folder) {
  const auto rules = make_confinement({.writable = {}, .hidden = folder});
  if (!rules) return rules.error().what;
  ::close(*rules);
  return {};
}

bool enter_confinement(int rules) {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(kRestrict, rules, 0U) == 0;
}

}  // namespace strata
