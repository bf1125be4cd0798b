// SPDX-License-Identifier: Apache-2.0
// Folders that appear whole or not at all: made beside their place under a name that nobody can foresee, which only
// their owner may enter, then renamed.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace strata {

// What the umask leaves of 0666 and 0777.
std::filesystem::perms new_file_permissions();
std::filesystem::perms new_folder_permissions();

// A new folder .NAME.partial-XXXXXX beside `place`. Errors: the parent folder cannot be written to.
Result<std::filesystem::path> make_folder_beside(const std::filesystem::path& place);
// Renames it to `place`, which must be free or an empty folder, with the permissions of a new folder.
std::error_code put_in_place(const std::filesystem::path& staged, const std::filesystem::path& place);

}  // namespace strata
