// SPDX-License-Identifier: Apache-2.0
// manifest.json of a bundle: every file of it with its size and hash, so that a damaged one is not proven with.
#pragma once

#include <filesystem>

#include "common/result.hpp"

namespace strata::plan {

// Error: the first file that is missing, has another size or another content; `what` begins with the file's name.
Result<void> check_manifest(const std::filesystem::path& bundle);

}  // namespace strata::plan
