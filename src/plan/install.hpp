// SPDX-License-Identifier: Apache-2.0
// Installing the environments that levels bring (level/own_environment.hpp).
#pragma once

#include <string>
#include <vector>

#include "common/places.hpp"
#include "level/level.hpp"

namespace strata::plan {

// Those of `levels` that `named` names (as --levels does) and whose environment is not there: installs it by
// setup/environment.sh, which says on standard error what it does. What fails is left beside the environment's place,
// and why_unavailable() says it of the level; others go on. A Ctrl-C ends the rest.
void install_environments(const std::vector<level::Level>& levels, const std::vector<std::string>& named,
                          const Installation& place);

}  // namespace strata::plan
