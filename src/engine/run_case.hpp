// SPDX-License-Identifier: Apache-2.0
// One case of a comparison or a sweep: captured, measured at all its levels, its metrics stored.
#pragma once

#include "engine/events.hpp"
#include "engine/prepare.hpp"
#include "engine/stored_run.hpp"

namespace strata::engine {

// All that is captured of a case before it is measured.
struct CapturedCase {
  plan::Bundle bundle;
  std::optional<plan::Bundle> strict, deep;  // as measure::CaseExtras has them
  std::optional<measure::Evaluation> evaluation;
  measure::CaseExtras extras() const;  // with the addresses of these
};
Result<CapturedCase> capture_case(const Prepared& ready, const core::CaseSpec& spec, EventSink& events);

// What a capture of any of the cases would refuse, with nothing captured: cases that differ in mode or size are tried.
// Error: the first of a comparison; of a sweep, which measures what it can, only where every case is refused.
Result<void> check_cases(const Prepared& ready, bool all, EventSink& events);

// The inputs that a score wants, added to a case of mode infer where --eval asks for it.
Result<void> add_evaluation(CapturedCase& captured, const Prepared& ready, const store::Store& store);

// As the run that goes on has stored it; nullptr: nothing of it, or no run goes on.
const store::Case* stored_case(const store::Run* resumed, const std::string& key);

// A case that the run that goes on has measured already is not measured again. Error: it cannot be captured, or the
// store's.
Result<measure::Outcome> run_case(const Prepared& ready, const core::CaseSpec& spec, measure::MachineFacts& facts,
                                  store::Store& store, StoredRun& stored, EventSink& events);

// All cases, one after the other. A case that cannot be run does not take the others with it; the first error is
// returned after them.
Result<measure::Outcome> run_cases(const Prepared& ready, measure::MachineFacts& facts, store::Store& store,
                                   StoredRun& stored, EventSink& events);

}  // namespace strata::engine
