// SPDX-License-Identifier: Apache-2.0
// What a level reported of its settings, in words.
#pragma once

#include <string>

#include "analysis/result.hpp"

namespace strata::report {

// "threads 2, precision fp32, inference mode yes"; lists and objects within as words too, never as JSON. "" for none.
std::string settings_words(const analysis::RowResult& row);

}  // namespace strata::report
