// SPDX-License-Identifier: Apache-2.0
// bundle.json of a captured network (docs/bundle.md), checked once: whoever reads a field of it afterwards finds the
// type that the page says, or no field.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/result.hpp"

namespace strata {

// Error: unreadable, another version, or the first field that is not as docs/bundle.md says. `whole`: what a run needs
// (case, model, ring, outputs) must be there.
Result<nlohmann::json> read_bundle_info(const std::filesystem::path& bundle, bool whole);

// The same for a value that was read elsewhere. `where` names it.
Result<void> check_bundle_info(const nlohmann::json& info, const std::string& where, bool whole);

}  // namespace strata
