// SPDX-License-Identifier: Apache-2.0
// Which versions an environment has: what an artefact was made with, and what its image installs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace strata::engine {

struct PackageVersions {
  std::string python;                           // the interpreter's own; empty where it does not start
  std::map<std::string, std::string> packages;  // of those asked for; empty for one that is not there
};

PackageVersions package_versions(const std::vector<std::string>& packages, const std::string& python,
                                 const std::filesystem::path& root);

}  // namespace strata::engine
