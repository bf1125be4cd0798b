// SPDX-License-Identifier: Apache-2.0
// Results for tests, written as JSON of which only what matters stands there: what is missing is unknown.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/result_json.hpp"

namespace strata::analysis {

// Where it cannot be read the test has failed, and the result is empty.
inline RunResult result_from(nlohmann::json written) {
  written["schema"] = kResultSchema;
  auto result = read_result(written, "result");
  if (!result) ADD_FAILURE() << result.error().what;
  return result.value_or(RunResult());
}

inline CaseResult case_from(nlohmann::json written) {
  auto cases = result_from({{"cases", nlohmann::json::array({std::move(written)})}}).cases;
  return cases.empty() ? CaseResult() : std::move(cases.front());
}

}  // namespace strata::analysis
