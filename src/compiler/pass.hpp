// SPDX-License-Identifier: Apache-2.0
// The table of passes.
#pragma once

#include <span>
#include <string_view>

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::compiler {

// Changes how a program computes, not what. Needs the passes before it in the table, and leaves a program that verify()
// accepts, but for the offsets, which plan_memory gives. May throw graph::ArgumentError.
struct Pass {
  std::string_view name;
  std::string_view what;  // a sentence
  Result<void> (*apply)(Program&);
};

// In the order in which they run.
std::span<const Pass> passes();

}  // namespace strata::compiler
