// SPDX-License-Identifier: Apache-2.0
// The option `--memory-budget` of verbs that make training steps: 200MB, 1.5GiB, 70%.
#pragma once

#include <optional>
#include <string>

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::generate {

// Units of 1000 and of 1024; a percentage is of what the step takes without a budget. nullopt: the text is empty.
// Errors say what is allowed.
Result<std::optional<compiler::MemoryBudget>> parse_memory_budget(const std::string& text);

}  // namespace strata::generate
