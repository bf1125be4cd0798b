// SPDX-License-Identifier: Apache-2.0
// Lines of code to maintain (docs/measuring.md): what a person writes and keeps to run a network at a level, counted in
// the files that level.json names.
#pragma once

#include "level/level.hpp"

namespace strata::level {

struct MaintainedFile {
  std::string name;  // its last part
  int lines = 0;
};

// Lines that are neither blank nor comment alone: `#` in Python and CMake (docstrings of a line's own too), `//` and
// `/* */` elsewhere. nullopt: it cannot be read.
std::optional<int> code_lines(const std::filesystem::path& file);

// Those of the level's `to_maintain` that belong to the model. An entry is a file, or "FILE if NAME" for models whose
// names begin with NAME. Error: a file that is not there.
Result<std::vector<MaintainedFile>> to_maintain(const Level& level, const Places& places, const std::string& model);

}  // namespace strata::level
