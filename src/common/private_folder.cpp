// SPDX-License-Identifier: Apache-2.0
// ssh's rule for folders whose files are believed: nobody but the user and root may have put them there.
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <system_error>
#include <vector>

#include "common/places.hpp"

namespace strata {
namespace fs = std::filesystem;
namespace {

std::string user_name(uid_t user) {
  const passwd* entry = getpwuid(user);
  return entry ? fmt::format("the user {}", entry->pw_name) : fmt::format("user {}", user);
}

// A group of one, as many systems give to each user: its members are the user.
bool is_own_group(gid_t group) {
  const passwd* user = getpwuid(geteuid());
  if (user == nullptr || user->pw_gid != group) return false;
  const std::string name = user->pw_name;
  const struct group* entry = getgrgid(group);
  if (entry == nullptr || name != entry->gr_name) return false;
  for (char** member = entry->gr_mem; *member != nullptr; ++member)
    if (name != *member) return false;
  return true;
}

// Who owns / can do everything anyway: root, or in a container of a user's own whoever root is there.
bool is_trusted(uid_t owner) {
  struct stat root {};
  return owner == 0 || owner == geteuid() || (stat("/", &root) == 0 && owner == root.st_uid);
}

// Why others could change what lies in the folder (or in the file); empty: they cannot.
std::string who_else(const struct stat& status) {
  if (!is_trusted(status.st_uid)) return fmt::format("belongs to {}", user_name(status.st_uid));
  if (S_ISLNK(status.st_mode) || (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0)) return {};
  if ((status.st_mode & S_IWOTH) != 0) return "can be written by everybody";
  if ((status.st_mode & S_IWGRP) != 0 && !is_own_group(status.st_gid)) return "can be written by its group";
  return {};
}

// The folder and those above it, the outermost first: as they are named and, behind links, as they are.
std::vector<fs::path> chain_of(const fs::path& folder) {
  std::vector<fs::path> chain;
  std::set<fs::path> known;
  std::error_code ec;
  const auto named = fs::absolute(folder, ec).lexically_normal();
  for (const auto& path : {named, fs::weakly_canonical(named, ec)}) {
    fs::path prefix;
    for (const auto& part : path) {
      prefix /= part;
      if (!part.empty() && known.insert(prefix).second) chain.push_back(prefix);
    }
  }
  return chain;
}

tl::unexpected<Error> not_private(const fs::path& folder, const fs::path& at, const std::string& why,
                                  const std::string& remedy) {
  const auto where = at == folder ? folder.string() : fmt::format("{}, since {}", folder.string(), at.string());
  return fail(fmt::format("strata does not use {} {}: what it keeps there is executed, so nobody else may change it",
                          where, why),
              fmt::format("{}, or take the others' rights away (chmod go-w, chown)", remedy), Exit::environment);
}

}  // namespace

fs::path home_folder() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return home;
  const passwd* user = getpwuid(geteuid());
  std::error_code ec;
  if (user != nullptr && user->pw_dir != nullptr && *user->pw_dir == '/' && fs::is_directory(user->pw_dir, ec))
    return user->pw_dir;
  return {};
}

Result<void> private_folder(const fs::path& folder, const std::string& remedy) {
  if (folder.empty())
    return fail("there is no folder to keep captured networks and artefacts in: HOME is not set", remedy,
                Exit::environment);
  for (const auto& path : chain_of(folder)) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 && (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST))
      return fail(fmt::format("cannot make the folder {}: {}", folder.string(), std::strerror(errno)), remedy,
                  Exit::environment);
    if (lstat(path.c_str(), &status) != 0)
      return fail(fmt::format("cannot look at {}: {}", path.string(), std::strerror(errno)), remedy, Exit::environment);
    if (const auto why = who_else(status); !why.empty()) return not_private(folder, path, why, remedy);
  }
  return {};
}

Result<void> private_tree(const fs::path& folder, const std::string& remedy) {
  STRATA_TRY(private_folder(folder, remedy));
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ec)) {
    struct stat status {};
    if (lstat(entry.path().c_str(), &status) != 0) continue;  // it went meanwhile
    if (const auto why = who_else(status); !why.empty()) return not_private(folder, entry.path(), why, remedy);
  }
  if (ec && ec != std::errc::no_such_file_or_directory)
    return fail(fmt::format("cannot read the folder {}: {}", folder.string(), ec.message()), remedy);
  return {};
}

}  // namespace strata
