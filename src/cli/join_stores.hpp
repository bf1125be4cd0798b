// SPDX-License-Identifier: Apache-2.0
// What `runs merge` and `runs import` do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace strata::cli {

// Every run of these stores comes to `into`, which is made where it is missing; says how many. The exit code.
int join_stores(const std::vector<std::string>& files, const std::filesystem::path& into);

}  // namespace strata::cli
