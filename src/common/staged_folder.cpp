// SPDX-License-Identifier: Apache-2.0
#include "common/staged_folder.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace strata {
namespace fs = std::filesystem;
namespace {

// The umask can be read only by setting it.
mode_t hidden_bits() {
  const auto hidden = umask(077);
  umask(hidden);
  return hidden;
}

}  // namespace

fs::perms new_file_permissions() {
  return static_cast<fs::perms>(0666 & ~hidden_bits());
}
fs::perms new_folder_permissions() {
  return static_cast<fs::perms>(0777 & ~hidden_bits());
}

Result<fs::path> make_folder_beside(const fs::path& place) {
  std::string name = (place.parent_path() / fmt::format(".{}.partial-XXXXXX", place.filename().string())).string();
  if (mkdtemp(name.data()) != nullptr) return fs::path(name);
  return fail(fmt::format("cannot write to {}: {}", place.parent_path().string(),
                          std::error_code(errno, std::generic_category()).message()),
              "name a folder that you may write to", Exit::usage);
}

std::error_code put_in_place(const fs::path& staged, const fs::path& place) {
  std::error_code error;
  fs::permissions(staged, new_folder_permissions(), error);
  if (!error) fs::rename(staged, place, error);
  return error;
}

}  // namespace strata
