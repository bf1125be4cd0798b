// SPDX-License-Identifier: Apache-2.0
// Several environments in one comparison, as --env NAME=PATH names them: levels that need the user's PyTorch take part
// once in each, the others once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "level/level.hpp"
#include "plan/environment.hpp"

namespace strata::plan {

// `python`: an absolute path.
struct NamedPython {
  std::string name, python;
  friend bool operator==(const NamedPython&, const NamedPython&) = default;
};

struct NamedEnvironment {
  std::string name;
  Installation place;  // of its interpreter
  Environment environment;
};

// The interpreter that a text names, absolute, its links as they are (a virtual environment's is one). A folder stands
// for the environment in it, a bare name is looked up as a shell does. It need not exist.
std::filesystem::path interpreter_at(const std::string& text);

// From the texts of --env, with paths as interpreter_at has them. Errors (usage): not NAME=PATH, a bad name or one
// given twice, a path that is no interpreter, an interpreter given twice.
Result<std::vector<NamedPython>> parse_environments(const std::vector<std::string>& texts);

// Error (usage): there is a --python beside them.
Result<void> check_alone(const std::vector<NamedPython>& named, const std::string& python);

// " --env old=/a/bin/python --env new=/b/bin/python"; "" for none.
std::string environment_words(const std::vector<NamedPython>& named);

// Asks each, with the level binaries and the overlay that the launcher set up for it (STRATA_ENVIRONMENTS). Errors: one
// is no Python (usage), or has no PyTorch.
Result<std::vector<NamedEnvironment>> ask_named_environments(const std::vector<NamedPython>& named,
                                                             const Installation& place,
                                                             const std::vector<std::string>& modules);

// A level that uses the user's PyTorch once for each of several names, side by side; every other level as it is.
std::vector<level::Level> in_each_environment(const std::vector<level::Level>& levels,
                                              const std::vector<NamedPython>& named);

}  // namespace strata::plan
