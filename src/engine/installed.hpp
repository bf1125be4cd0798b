// SPDX-License-Identifier: Apache-2.0
// Levels, models and environments that are here.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/places.hpp"
#include "level/level.hpp"
#include "plan/supported.hpp"
#include "probe/checks.hpp"

namespace strata::engine {

// In words, whether its files are there; its interpreter is not asked, which takes time.
std::string state_of(const level::Level& level, const Installation& place);

struct KnownModel {
  std::string name, kind, about;  // "shipped", "torchvision", "package"
};
struct KnownModels {
  std::vector<KnownModel> models;
  std::vector<KnownModel> packages;  // how models of a package are named, one a package
  bool torchvision = false;          // whether its names could be asked for
};
// The shipped models, from models/*/model.json; torchvision's names only where torchvision is; the packages of
// models/packages.json.
KnownModels known_models(const Installation& place);

struct SupportedModel {
  KnownModel model;
  plan::Verdict infer, train;
};
struct ModelsOfLevel {
  level::Level level;
  std::vector<SupportedModel> models;
  bool torchvision = false;
  std::string torch, torchvision_version;  // by whose graphs it is judged; empty: the level runs any graph
};
// What the level of this name can run, by mode, and why not. Error: it is none, or several.
Result<ModelsOfLevel> models_of_level(const std::string& name, const Installation& place);

struct KnownEnvironment {
  std::string name, interpreter, python, torch, problem;  // versions: "-": not known; of torch: "none"
};
// strata's own interpreter, the one that is named in its place, and those of levels. Each is asked.
std::vector<KnownEnvironment> known_environments(const Installation& place);

// Names (lower case, dashes) and versions of the packages of strata's own interpreter; {}: it does not run. Read from
// files, but for a package's, which may be no virtual environment and have them anywhere.
std::map<std::string, std::string> packages_of(const Installation& place);

// Where strata's own interpreter has a module: in a user's packages, a system's, or what a .pth file names. {}: it has
// none.
std::filesystem::path folder_of_module(const std::string& module, const Installation& place);

// What each level lacks on this machine, for `strata doctor`: one check of each level that is found, and of each folder
// that is none. An interpreter other than strata's own is asked for its packages, which takes seconds.
probe::Checks level_checks(const Installation& place);

}  // namespace strata::engine
