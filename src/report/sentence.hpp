// SPDX-License-Identifier: Apache-2.0
// The one sentence at the top of every report: move to a level, stay, undecided, or why there is nothing to say.
#pragma once

#include "report/access.hpp"
#include "store/record.hpp"

namespace strata::report {

// A run whose smallest visible effect lies above this compares nothing: it says so instead of the number.
inline constexpr double too_noisy_percent = 100;

// {"verdict":"move|stay|undecided|no_data|not_reliable","level":name|null,"sentence":"..."} from a case's rows,
// reference_level and trust. Where others had the cores that the threads need it recommends nothing. Else it recommends
// the fastest level that is resolved as faster than the reference and proven; never a harness level.
Json headline(const Json& one_case);

// The same for a tuned run: each level at its best against the reference at its best.
Json tuned_headline(const Json& one_case);

// What others used of the machine, of a case's `trust`, and in words: "other programs use 97% of this machine, another
// strata run is measuring (pid 12)".
Json load_json(const store::Case& run_case);
std::string who_had_the_cores(const Json& load);

// The headline of a finished case in a few words, for a list: "static 2.31x", "stay", "not reliable".
std::string brief_verdict(const Json& one_case);

}  // namespace strata::report
