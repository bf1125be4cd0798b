// SPDX-License-Identifier: Apache-2.0
// All levels that are here: strata's own, those of STRATA_LEVEL_PATH, and those that Python distributions bring, as
// entry points of the group stratabench.levels (docs/add_a_level.md).
#pragma once

#include "common/places.hpp"
#include "level/level.hpp"

namespace strata::level {

// A distribution's level comes last where an id is taken; an entry point that names no level is a problem that says
// whose it is. The distributions are those of `place.python`, which is asked once; none if it does not run.
DiscoveredLevels installed_levels(const Installation& place);

}  // namespace strata::level
