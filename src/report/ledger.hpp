// SPDX-License-Identifier: Apache-2.0
// What the ledger compares before it draws an edge as a step.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace strata::report {

// "layout: contiguous, blocked" for each of layout, precision, freezing and threads that differs between two levels'
// settings (docs/protocol.md). A layout `any` matches every other; what a level does not report counts as a difference.
std::vector<std::string> setting_differences(const nlohmann::json& from, const nlohmann::json& to);

}  // namespace strata::report
