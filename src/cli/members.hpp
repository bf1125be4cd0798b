// SPDX-License-Identifier: Apache-2.0
// The members of a request as options of a verb.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "requests/member.hpp"

namespace strata::cli {

// What they refer to outlives the verb.
void add_members(CLI::App& verb, const std::vector<requests::Member>& members);
void add_member(CLI::App& verb, const requests::Member& member);

}  // namespace strata::cli
