// SPDX-License-Identifier: Apache-2.0
// The section of a sweep that looked for a batch: what it found for each level, and the curve it went along.
#pragma once

#include <optional>
#include <string>

#include "analysis/surface.hpp"
#include "report/document.hpp"

namespace strata::report {

struct BestBatch {
  std::string sentence;
  document::Section section;
};
// nullopt: the run looked for none. `grid`: of the run.
std::optional<BestBatch> best_batch(const store::Run& run, const analysis::Grid& grid);

}  // namespace strata::report
