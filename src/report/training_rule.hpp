// SPDX-License-Identifier: Apache-2.0
// --rule mlperf: MLPerf's check of the epochs to a target (stats/convergence.hpp), in both directions.
#pragma once

#include <vector>

#include "analysis/learning_verdict.hpp"
#include "report/document.hpp"

namespace strata::report {

// `target`: a share of the test images. Says so where the reference itself does not converge.
document::Section mlperf_rule(const analysis::Learner& reference, const std::vector<analysis::Learner>& others,
                              double target);

}  // namespace strata::report
