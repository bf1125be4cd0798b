// SPDX-License-Identifier: Apache-2.0
// Whether a run can go on, and with what.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/run_context.hpp"

namespace strata::engine {

// Errors: there is no such run, it is being measured, it came from another store, it does not say what it was asked.
Result<store::Run> resumable_run(const std::filesystem::path& store, const std::string& which);

// Set-up has to know the interpreters before this program starts. Error: the run began with others.
Result<void> check_interpreters(const std::string& run_id, const CompareRequest& began, const std::string& python,
                                const std::vector<plan::NamedPython>& now);

}  // namespace strata::engine
