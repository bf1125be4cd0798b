// SPDX-License-Identifier: Apache-2.0
// What a case's numbers advise: move to a level, stay, undecided, or nothing. report/sentence.hpp puts it in words.
#pragma once

#include "analysis/result.hpp"

namespace strata::analysis {

// Rows are the case's; none of them, beside the reference, is a harness level.
struct Judgement {
  HeadlineVerdict verdict = HeadlineVerdict::no_data;
  const RowResult* reference = nullptr;  // nullptr: it was not run
  // The fastest that is resolved as faster than the reference and proven, and the fastest such one that is no peer.
  const RowResult *best = nullptr, *inside = nullptr;
  const RowResult *nearest = nullptr, *open = nullptr;  // the fastest of all, and of those of which it is left open
  // That used least processor time where that is proven to be less than the reference's; only if `not_reliable`.
  const RowResult* thriftiest = nullptr;
  std::size_t requested = 0, timed = 0, compared = 0;  // rows beside the reference; that have a time; that have a ratio

  const RowResult* recommended() const;  // nullptr: none
};

// Where others had the cores that the threads need it recommends nothing.
Judgement judge_case(const CaseResult& one_case);

// The same question where each level is at its best against the reference at its best (--tuned).
CaseResult at_their_best(const CaseResult& one_case);

}  // namespace strata::analysis
