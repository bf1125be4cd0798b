// SPDX-License-Identifier: Apache-2.0
// A run as CSV: one line for each case and level, every number.
#pragma once

#include <string>

#include "report/access.hpp"

namespace strata::report {

// Columns are named after the JSON's paths, with units; unknown is an empty field.
std::string csv(const Json& run);

}  // namespace strata::report
