// SPDX-License-Identifier: Apache-2.0
// Where the programs that this run starts put temporary files: a folder below the cache that nobody else can write to.
// PyTorch looks for precompiled headers in the folder for temporary files whatever its cache folder is, so a shared
// /tmp would let another user choose what is compiled into a network. Removed at the end of this process; what a killed
// one left is removed by the next.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace strata {

// Makes it (0700) on first use; the value of TMPDIR. Headers that PyTorch precompiles stay in `cache`/headers for the
// next run. Error: it cannot be made.
Result<std::string> temporary_folder(const std::filesystem::path& cache);

}  // namespace strata
