// SPDX-License-Identifier: Apache-2.0
// Compiles a generated program to a shared library with the machine's C++ compiler.
#pragma once

#include <filesystem>

#include "common/result.hpp"

namespace strata::static_program {

// From the sources in `folder` (src/generate writes them) to `library`. The kit, equal for all programs, was compiled
// with the level. Error: no compiler, or what it says.
Result<void> compile_program(const std::filesystem::path& folder, const std::filesystem::path& library);

}  // namespace strata::static_program
