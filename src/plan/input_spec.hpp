// SPDX-License-Identifier: Apache-2.0
// The `--input` option: [name=][dtype:]shape[:low..high], as 1x3x224x224, ids=int64:1x128:0..30521 or
// mask=float32:1x12:1, a constant.
#pragma once

#include <string>

#include "common/result.hpp"
#include "core/case.hpp"

namespace strata::plan {

// Errors name the part that is wrong and show an example.
Result<core::Input> parse_input(const std::string& text);

}  // namespace strata::plan
