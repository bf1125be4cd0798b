// SPDX-License-Identifier: Apache-2.0
// The one sentence at the top of every report: move to a level, stay, undecided, or why there is nothing to say.
#pragma once

#include <string>

#include "analysis/result.hpp"
#include "store/case_facts.hpp"

namespace strata::report {

// A run whose smallest visible effect lies above this compares nothing: it says so instead of the number.
inline constexpr double too_noisy_percent = 100;

// What analysis/headline.hpp makes of a case's rows, reference and trust, in words.
analysis::Headline headline(const analysis::CaseResult& one_case);

// The same for a tuned run: each level at its best against the reference at its best.
analysis::Headline tuned_headline(const analysis::CaseResult& one_case);

// Of a run that goes on and has had so few restarts that none of `planned` shows a spread: no level is judged.
analysis::Headline preliminary_headline(const analysis::CaseResult& one_case, int planned);

// What others used of the machine: "other programs use 97% of this machine, another strata run is measuring (pid 12)".
std::string who_had_the_cores(const analysis::TrustFacts& trust);
std::string who_had_the_cores(const store::LoadFacts& load);

// The headline of a finished case in a few words, for a list: "static 2.31x", "stay", "not reliable".
std::string brief_verdict(const analysis::CaseResult& one_case);

}  // namespace strata::report
