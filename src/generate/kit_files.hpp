// SPDX-License-Identifier: Apache-2.0
// Which files of the kit for processors (kit/) a program needs: those that define what its stages call, and what these
// call in turn. The others would only be compiled.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace strata::generate {

// A source file of the kit, the functions that stages call in it, and the other files that it calls.
struct KitFile {
  std::string_view name;
  std::vector<std::string_view> functions, calls;
};
// All but those that every program has.
const std::vector<KitFile>& kit_table();
// What every program has.
const std::set<std::string>& kit_base();

// `code`: the statements of all stages; `includes`: the kit's headers that the program's other files include. The names
// of sources, and of the headers that these include. Error: a file of strata's own that cannot be read.
Result<std::set<std::string>> kit_files(const std::filesystem::path& kit, const std::string& code,
                                        const std::set<std::string>& includes);

}  // namespace strata::generate
