// SPDX-License-Identifier: Apache-2.0
// One way of looking at a case: a file of this folder each. They run in the order of passes(), on the participants that
// are still active.
#pragma once

#include <span>

#include "measure/case_run.hpp"

namespace strata::measure {

struct Pass {
  // What is done, in the words of a plan that is printed before it runs.
  std::vector<std::string> (*name)(const Setting& setting);
  bool (*applies)(const Setting& setting, const core::Case& question);
  // Error: the store's, or a bundle that cannot be read. What fails in a level becomes its row.
  Result<void> (*run)(CaseRun& point);
  bool in_every_visit = false;  // of a case that is visited several times (VisitedCase)
};

// All there are, in the order in which they run.
std::span<const Pass> passes();

// One function a file of this folder.
Result<void> prove_levels(CaseRun& point);
Result<void> tune_levels(CaseRun& point);
Result<void> compare_layers(CaseRun& point);
Result<void> measure_levels(CaseRun& point);
Result<void> profile_levels(CaseRun& point);
Result<void> visit_batch_sizes(CaseRun& point);
Result<void> serve_levels(CaseRun& point);
Result<void> score_levels(CaseRun& point);

}  // namespace strata::measure
