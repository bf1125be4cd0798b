// SPDX-License-Identifier: Apache-2.0
// What others used of the machine before and while a case was measured, from restart to restart.
#pragma once

#include <vector>

#include "probe/load.hpp"
#include "store/record.hpp"

namespace strata::analysis {

using store::LoadFacts;

// From restarts that were measured one after the other.
void add_restarts(LoadFacts& facts, const std::vector<probe::Load>& restarts);

// A restart's loads as the store has them, and back; what is no load is left out.
store::Json to_json(const std::vector<probe::Load>& loads);
std::vector<probe::Load> loads_of(const store::Json& stored);

}  // namespace strata::analysis
