// SPDX-License-Identifier: Apache-2.0
// Where things lie: strata's own tree, the caches, the level binaries. Set by the launcher, with defaults for a bare
// program. And whether what lies there can be trusted.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace strata {

struct Installation {
  std::filesystem::path root;         // the source tree: levels/, sdk/, src/capture/
  std::string python, tools_python;   // the environment's interpreter; strata's own, with the peers' runtimes
  std::filesystem::path level_build;  // level binaries of the environment
  std::string overlay;                // Python modules that a user's environment lacks; may be empty
  std::filesystem::path cache;  // bundles and artefacts: $STRATA_CACHE, else $XDG_CACHE_HOME/strata; empty: no place
};

Installation
installation();  // from STRATA_ROOT, STRATA_PYTHON, STRATA_TOOLS_PYTHON, STRATA_LEVEL_BUILD, STRATA_OVERLAY

// $HOME, else what the system's list of users says; empty where neither names a folder.
std::filesystem::path home_folder();

// A folder whose files are believed or executed, made (0700) where it is missing. Error, by ssh's rule: it or a folder
// above it belongs to somebody else than the user or root, or others may write there. `remedy`: how to name another.
Result<void> private_folder(const std::filesystem::path& folder, const std::string& remedy);
// The same for a folder that is there, and for everything in it.
Result<void> private_tree(const std::filesystem::path& folder, const std::string& remedy);

std::string utc_now();  // 2026-11-21T06:15:00Z

// Whether there is such a file; one that cannot be looked at (no permission, too long a name, a link to itself) is
// none.
bool there_is(const std::filesystem::path& path);

// Whether a file lies anywhere below the folder; a folder that cannot be read, or is none, has none.
bool holds_files(const std::filesystem::path& folder);

}  // namespace strata
