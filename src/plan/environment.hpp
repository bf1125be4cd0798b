// SPDX-License-Identifier: Apache-2.0
// An environment: a Python interpreter and the PyTorch in it. Asked without importing PyTorch.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/places.hpp"
#include "common/result.hpp"

namespace strata::plan {

struct Environment {
  std::string python, python_version, torch_version;  // torch_version empty: no PyTorch there
  std::vector<std::string> missing;                   // of the modules asked for
  std::string name;                                   // as --env gave it; may be empty
  std::vector<std::string> other_torch;               // "2.14.1 in FOLDER", which that one hides
  nlohmann::json packages;                            // {name: version} of all that is installed; null: not asked
  nlohmann::json to_json() const;                     // `name` and `packages` only where they are known
};

enum class EnvironmentDetail { modules, packages };

// `modules`: top-level Python modules to look for (found, not imported). Error: the interpreter does not run.
Result<Environment> ask_environment(const std::string& python, const Installation& place,
                                    const std::vector<std::string>& modules,
                                    EnvironmentDetail more = EnvironmentDetail::modules);

// That of `place.python`, whose PyTorch is measured, and strata's own, which runs the peers. Error: one does not run,
// or the first has no PyTorch.
struct Environments {
  Environment measured, tools;
};
Result<Environments> ask_environments(const Installation& place, const std::vector<std::string>& modules);

// The versions of PyTorch in environments that to_json wrote: "2.15.0"; of several "2.14.1 in old, 2.15.0 in new".
std::string torch_versions(const std::vector<nlohmann::json>& environments);

}  // namespace strata::plan
