// SPDX-License-Identifier: Apache-2.0
// The files of a new level: level.json, its source and a README, ready for `strata level check`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::level {

struct Skeleton {
  std::string id;                // the level's id and its folder's name
  std::string language;          // "c++" or "python"
  std::filesystem::path parent;  // the folder is made in here
  std::filesystem::path root;    // strata's own tree
};

// Writes the folder and returns the files. Errors: a bad id or language, a folder that exists, no permission.
Result<std::vector<std::filesystem::path>> write_skeleton(const Skeleton& skeleton);

}  // namespace strata::level
