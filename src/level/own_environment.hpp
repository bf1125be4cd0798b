// SPDX-License-Identifier: Apache-2.0
// The Python environment that a level brings: requirements.txt in its folder, pinned and hashed, which
// setup/environment.sh installs beside strata's own. Its place is named by what it is made of, so that a changed list
// or another Python is another environment; it appears there whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "level/level.hpp"

namespace strata::level {

// Whether the level brings one.
bool has_own_environment(const Level& level);

// <root>/build/environments/<id>-<hash of requirements.txt and of the version of strata's own Python>.
std::filesystem::path own_environment(const Level& level, const Places& places);

// Why its environment is not there, and what to do: never installed, stopped before its end, or failed (what the last
// try left). nullopt: it is there, or the level brings none.
std::optional<Error> own_environment_missing(const Level& level, const Places& places);

// The megabytes of its installation, as a comment of requirements.txt says them ("# 54 MB to download, 226 MB on
// disk"); empty: it does not.
std::string own_environment_size(const Level& level);

}  // namespace strata::level
