// SPDX-License-Identifier: Apache-2.0
// Results of comparisons (docs/results_schema.md) as a document: a part for each case, then accuracy against speed and
// the environment of each run.
#pragma once

#include <vector>

#include "analysis/result.hpp"
#include "report/document.hpp"

namespace strata::report {

document::Document compare_document(const std::vector<analysis::RunResult>& runs);

// What options of the run add to a case, without what is empty: several clients, a limit, variants, open batches; the
// phases of a training step.
std::vector<document::Section> added_sections(const analysis::CaseResult& one_case);

}  // namespace strata::report
