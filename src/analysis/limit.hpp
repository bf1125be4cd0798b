// SPDX-License-Identifier: Apache-2.0
// Whether a case's levels can be held against what the machine can do at most.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/record.hpp"

namespace strata::analysis {

using store::Json;

// The bundle's `flops`; nullopt: none are known.
std::optional<double> flops_of(const Json& bundle);

// The operations whose work the bundle's `flops` leave out.
std::vector<std::string> uncounted_of(const Json& bundle);

// Why no level of the case can be accused of being faster than the machine ("" if one can), from the bundle's facts and
// measure::limits_of.
std::string why_no_limit(const Json& bundle, const std::optional<store::Limits>& limits);

}  // namespace strata::analysis
