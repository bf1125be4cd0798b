// SPDX-License-Identifier: Apache-2.0
// --dynamic: the range of batch sizes that one artefact must serve, and which of them are visited.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::plan {

// "batch=1..32" as spec.json has it: {"low":1,"high":32,"sizes":[1,2,4,8,16,32]}. Error: another form, an empty range.
Result<nlohmann::json> parse_dynamic(const std::string& text);

// Both ends and the powers of two between them, ascending.
std::vector<int> sizes_between(int low, int high);

}  // namespace strata::plan
