// SPDX-License-Identifier: Apache-2.0
// Runs the machine's C++ compiler, for levels whose artefact is a library of generated code.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::generate {

// `words`: flags and sources; the library appears whole or not at all, what the compiler says goes to `log`. The
// compiler is CXX, else `fallback`. Error: none can be started (environment), or the end of what it said.
Result<void> compile_library(const std::string& fallback, const std::vector<std::string>& words,
                             const std::filesystem::path& log, const std::filesystem::path& library);

}  // namespace strata::generate
