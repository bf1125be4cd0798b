// SPDX-License-Identifier: Apache-2.0
// The result of a comparison as JSON (docs/results_schema.md, strata.run/1), written and read by one list of names.
#pragma once

#include "analysis/result.hpp"
#include "common/result.hpp"

namespace strata::analysis {

inline constexpr const char* kResultSchema = "strata.run/1";

// What is unknown is null.
nlohmann::json to_json(const RunResult& result);
nlohmann::json to_json(const RunFacts& run);
nlohmann::json to_json(const RowResult& result);
nlohmann::json to_json(const AccuracyPoint& point);

// Error: another schema, or the first value that is of another type than docs/results_schema.md says. What is missing
// is unknown; what it does not know it passes over. `where` names the result in errors.
Result<RunResult> read_result(const nlohmann::json& written, const std::string& where);

// `model` of a bundle.json. Values of a wrong type are passed over.
ModelFacts model_facts(const nlohmann::json& bundle);

}  // namespace strata::analysis
