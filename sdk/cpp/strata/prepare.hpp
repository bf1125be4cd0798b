// SPDX-License-Identifier: Apache-2.0
// main() of a level's prepare command in C++ (docs/add_a_level.md): --bundle DIR --cache DIR and, for a variant,
// --variant NAME; one JSON line as answer.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "common/result.hpp"

namespace strata {

// `variant`: "default" if none is named.
using Prepare = std::function<Result<void>(const std::filesystem::path& bundle, const std::filesystem::path& cache,
                                           const std::string& variant)>;

// Errors of exit code environment are answered `unsupported`, but `unavailable` where there is no compiler.
int prepare_main(int count, char** words, const Prepare& prepare);
// What is being done: for the log, and for whoever waits.
void say_progress(const std::string& what);
// A value of the file `<this program>.built_with` (strata_built_with() of levels/CMakeLists.txt writes it: a line
// `name=value` each): paths that another machine has elsewhere are no part of the program. Error: it is not there.
Result<std::string> built_with(const std::string& name);

}  // namespace strata
