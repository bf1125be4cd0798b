// SPDX-License-Identifier: Apache-2.0
// Stored runs of the verbs that have a report of their own, as documents.
#pragma once

#include "common/result.hpp"
#include "report/document.hpp"
#include "store/store.hpp"

namespace strata::report {

// A sweep: who may be the fastest where, times along each axis, speedups, every outcome.

// Whether a run is one of `strata sweep`.
bool is_sweep(const store::Run& run);

document::Document sweep_document(const store::Run& run);

// A training: how well and how fast each level learned.

// Whether a run is one of `strata train`.
bool is_training(const store::Run& run);

// Means over repeats with their range; accuracy and loss against epochs and against time; phases; what was proven.
// Error: the store's.
Result<document::Document> training_document(const store::Run& run, const store::Store& store);

// A suite's run: one line an entry, with its run.

// Whether a stored run is a suite's, which has no cases of its own (docs/suites.md).
bool is_suite(const store::Run& run);

// "3 entries: 2 done, 1 failed; ...": for a list of runs.
std::string suite_summary(const store::Run& run);

Result<document::Document> suite_document(const store::Run& run, const store::Store& store);

}  // namespace strata::report
