// SPDX-License-Identifier: Apache-2.0
// Files of a generated program's folder.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace strata::generate {

// A file of strata's own.
Result<std::string> read_text(const std::filesystem::path& path);
// With its folder.
Result<void> write_text(const std::filesystem::path& path, const std::string& text);
// Readable by whom the umask lets read.
Result<void> copy_to(const std::filesystem::path& from, const std::filesystem::path& to);
// The bundle's weights, and what is no weight (where there is such), under the names that programs read.
Result<void> copy_weights(const std::filesystem::path& bundle, const std::filesystem::path& folder);
Result<void> copy_constants(const std::filesystem::path& bundle, const std::filesystem::path& folder);

}  // namespace strata::generate
