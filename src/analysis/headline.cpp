// SPDX-License-Identifier: Apache-2.0
#include "analysis/headline.hpp"

#include <algorithm>

namespace strata::analysis {
namespace {

double ratio_of(const RowResult& row) {
  return row.ratio->value.value_or(0);
}

void keep_faster(const RowResult*& fastest, const RowResult& row) {
  if (!fastest || ratio_of(row) > ratio_of(*fastest)) fastest = &row;
}

bool is_proven(const RowResult& row) {
  return row.proof && row.proof->is_equal();
}

void add_compared(Judgement& judgement, const RowResult& row) {
  ++judgement.compared;
  keep_faster(judgement.nearest, row);
  const auto verdict = row.ratio->verdict;
  if (verdict == RatioVerdict::faster && is_proven(row)) {
    keep_faster(judgement.best, row);
    if (!row.peer) keep_faster(judgement.inside, row);
  } else if (verdict != RatioVerdict::slower && verdict != RatioVerdict::same) {
    keep_faster(judgement.open, row);
  }
}

const RowResult* thriftiest_of(const CaseResult& one_case) {
  const RowResult* thriftiest = nullptr;
  double least = 1;
  for (const auto& row : one_case.rows) {
    if (!row.is_measured() || !is_proven(row) || row.harness || !row.ratio || !row.ratio->by_processor_time) continue;
    const double low = row.ratio->by_processor_time->low.value_or(0);
    if (low <= least) continue;
    thriftiest = &row;
    least = low;
  }
  return thriftiest;
}

}  // namespace

const RowResult* Judgement::recommended() const {
  return verdict == HeadlineVerdict::move ? best : verdict == HeadlineVerdict::stay ? reference : nullptr;
}

Judgement judge_case(const CaseResult& one_case) {
  Judgement judgement{.reference = one_case.reference_row()};
  for (const auto& row : one_case.rows) {
    if (&row == judgement.reference || row.harness) continue;
    ++judgement.requested;
    if (!row.is_measured()) continue;
    ++judgement.timed;
    if (row.ratio && row.ratio->value) add_compared(judgement, row);
  }
  if (!judgement.reference || !judgement.reference->is_measured()) return judgement;
  if (!one_case.trust.reliable) {
    judgement.verdict = HeadlineVerdict::not_reliable;
    judgement.thriftiest = thriftiest_of(one_case);
  } else if (judgement.compared > 0) {
    judgement.verdict = judgement.best   ? HeadlineVerdict::move
                        : judgement.open ? HeadlineVerdict::undecided
                                         : HeadlineVerdict::stay;
  }
  return judgement;
}

CaseResult at_their_best(const CaseResult& one_case) {
  CaseResult best = one_case;
  best.rows.clear();
  for (const auto& row : one_case.rows) {
    if (row.is_measured() && !row.tuned) continue;  // a default that its own variant beat, or a harness
    auto& entry = best.rows.emplace_back(row);
    entry.reference = row.tuned && row.tuned->ratio && row.tuned->ratio->verdict == RatioVerdict::reference;
    if (!row.tuned) continue;
    entry.ratio = row.tuned->ratio;
    entry.break_even = row.tuned->break_even;
    if (entry.reference) best.reference_level = row.name();
  }
  return best;
}

}  // namespace strata::analysis
