// SPDX-License-Identifier: Apache-2.0
// The `--input` option: [name=][dtype:]shape[:low..high], as 1x3x224x224, ids=int64:1x128:0..30521 or
// mask=float32:1x12:1, a constant.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/result.hpp"

namespace strata::plan {

// One entry of spec.json's `inputs` (docs/bundle.md). Errors name the part that is wrong and show an example.
Result<nlohmann::json> parse_input(const std::string& text);

}  // namespace strata::plan
