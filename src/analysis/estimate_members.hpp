// SPDX-License-Identifier: Apache-2.0
// The members of an estimate with their names in JSON, for what writes or reads objects that have one.
#pragma once

#include "analysis/result.hpp"

namespace strata::analysis {

void each_member(auto& member, Estimate& estimate) {
  member("value", estimate.value), member("low", estimate.low), member("high", estimate.high);
}

}  // namespace strata::analysis
