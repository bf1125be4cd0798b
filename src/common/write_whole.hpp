// SPDX-License-Identifier: Apache-2.0
// A text file that is there whole or not at all.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace strata {

// Writes by a temporary file beside it, so that a reader never sees half a report. Devices are written to as they are.
Result<void> write_whole(const std::filesystem::path& path, const std::string& content);

}  // namespace strata
