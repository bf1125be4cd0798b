// SPDX-License-Identifier: Apache-2.0
// A suite's run as a document: one line an entry, with its run.
#pragma once

#include "common/result.hpp"
#include "report/document.hpp"
#include "store/store.hpp"

namespace strata::report {

// Whether a stored run is a suite's, which has no cases of its own (docs/suites.md).
bool is_suite(const store::Run& run);

// "3 entries: 2 done, 1 failed; ...": for a list of runs.
std::string suite_summary(const store::Run& run);

Result<document::Document> suite_document(const store::Run& run, const store::Store& store);

}  // namespace strata::report
