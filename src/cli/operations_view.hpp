// SPDX-License-Identifier: Apache-2.0
// --by, --sort, --top: how the operations of profiles are shown.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "report/operations.hpp"

namespace strata::cli {

struct OperationsArguments {
  std::string by = "operation", sort = "time";
  std::int64_t top = 15;

  report::OperationsView view() const;
};

// The three options; what they refer to outlives the verb.
std::vector<CLI::Option*> add_operations_view(CLI::App& verb, OperationsArguments& a);

}  // namespace strata::cli
