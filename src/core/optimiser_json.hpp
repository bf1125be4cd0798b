// SPDX-License-Identifier: Apache-2.0
// An optimiser as requests, bundle.json and the store have it (docs/bundle.md, "Mode train"): one reader and one
// writer, which the SDK compiles as well.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/result.hpp"
#include "core/optimiser.hpp"

namespace strata::core {

// With every field of its rule.
nlohmann::json to_json(const Optimiser& optimiser);

// Fields left out have the rule's defaults, others than the rule's are passed over. Error: the first that is not as
// that page says; `where` names the text.
Result<Optimiser> read_optimiser(const nlohmann::json& fields, const std::string& where);

}  // namespace strata::core
