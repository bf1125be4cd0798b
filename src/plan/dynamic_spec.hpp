// SPDX-License-Identifier: Apache-2.0
// --dynamic: the range of batch sizes that one artefact must serve, and which of them are visited.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "core/case.hpp"

namespace strata::plan {

// "batch=1..32". Error: another form, an empty range.
Result<core::OpenBatch> parse_dynamic(const std::string& text);

// Both ends and the powers of two between them, ascending.
std::vector<int> sizes_between(int low, int high);

}  // namespace strata::plan
