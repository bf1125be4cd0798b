// SPDX-License-Identifier: Apache-2.0
// Which batch of a stored sweep a rule comes to, level by level, and which others cannot be told apart from it.
#pragma once

#include <string>
#include <vector>

#include "analysis/batch_search.hpp"
#include "analysis/surface.hpp"
#include "stats/compare.hpp"
#include "stats/disturbed.hpp"
#include "store/record.hpp"

namespace strata::analysis {

// What a row shows of its batch, from all its undisturbed blocks.
BatchObservation batch_observation(const store::Row& row, const core::Case& question, const stats::CoreBudget& room);

// One level at one combination of the other axes.
struct BatchAnswer {
  std::string level;
  std::string at;  // "size 64, mode train"; empty: no other axis varies
  BatchCurve curve;
  std::optional<std::int64_t> batch;     // nullopt: no batch is allowed by the rule
  std::vector<std::int64_t> unreliable;  // batches that were measured in vain, unless memory alone is asked about
  std::int64_t fastest = 0;              // of the allowed ones that with the most samples a second
  // Allowed batches whose throughput may lie within 2% of that of the fastest: the 99% interval of their ratio, from
  // the medians of restarts (unpaired), does not exclude it.
  std::vector<std::int64_t> alike;
};
// `grid`: of the run.
std::vector<BatchAnswer> find_batches(const store::Run& run, const Grid& grid, const BatchRule& rule);

}  // namespace strata::analysis
