// SPDX-License-Identifier: Apache-2.0
// What each level costs besides its time, in words.
#pragma once

#include <optional>
#include <string>

#include "analysis/result.hpp"
#include "report/format.hpp"

namespace strata::report {

// "1,128 (900 to 1,400)", "at once", "never"; glyphs.missing if it is not known.
// `no_cost`: what a level is said to do that costs nothing more than the reference.
std::string break_even_words(const std::optional<analysis::BreakEven>& break_even, const Glyphs& glyphs,
                             const char* no_cost = "starts no slower");

// Facts that a level reported after it had run, in words: "31 guards, 12 us a call; 2 compiled again".
std::string fact_words(const analysis::RowResult& row);

}  // namespace strata::report
