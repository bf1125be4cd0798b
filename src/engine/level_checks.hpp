// SPDX-License-Identifier: Apache-2.0
// What each level lacks on this machine, for `strata doctor`.
#pragma once

#include "common/places.hpp"
#include "probe/checks.hpp"

namespace strata::engine {

// One of each level that is found, and of each folder that is none. An interpreter other than strata's own is asked
// for its packages, which takes seconds.
probe::Checks level_checks(const Installation& place);

}  // namespace strata::engine
