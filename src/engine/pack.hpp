// SPDX-License-Identifier: Apache-2.0
// What `strata pack` puts together: the request with what this installation knows of it. The work itself is
// stratabench.pack's (Python), which gets this as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "common/places.hpp"
#include "engine/needs.hpp"
#include "requests/request.hpp"

namespace strata::engine {

// The programs of the levels. Errors: a level that is none, or that brings an environment.
Result<Needs> needs_of(const requests::PackRequest& request);

// {"request": {...}, "levels": [{"id": "static", "folder": "/...", "needs": [], "programs": ["level_static", ...]}],
//  "installation": {"driver": "/...", "root": "/...", "python": "/...", "level_build": "/...", "overlay": "/..."}}
// Errors: the same, and that this strata is a pack itself.
Result<nlohmann::json> pack_order(const requests::PackRequest& request, const Installation& place);

}  // namespace strata::engine
