// SPDX-License-Identifier: Apache-2.0
// Compiles a generated program to a shared library with the machine's C++ compiler.
#pragma once

#include <filesystem>

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::static_program {

// From the sources in `folder` (src/generate writes them) to `library`. The kit, equal for all programs, was compiled
// with the level. Error: no compiler, no libraries for the target, or what the compiler says.
Result<void> compile_program(const std::filesystem::path& folder, compiler::Target target,
                             const std::filesystem::path& library);

}  // namespace strata::static_program
