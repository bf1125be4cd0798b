// SPDX-License-Identifier: Apache-2.0
// A level of a stored training, as the sections of its report see it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/layer_sizes.hpp"
#include "analysis/learning.hpp"
#include "report/document.hpp"
#include "store/store.hpp"

namespace strata::report {

struct TrainedLevel {
  const store::Row* row;
  analysis::Learning learning;  // empty where it has no numbers
  State state;
  std::string reason;
  std::vector<store::Series> series;

  bool measured() const { return state == State::measured; }
};

// The rows of a case, which must outlive them. Error: the store's.
Result<std::vector<TrainedLevel>> trained_levels(const store::Case& run_case, const store::Store& store);

// The level that the others are compared with; nullptr: it takes no part.
const TrainedLevel* reference_of(const std::vector<TrainedLevel>& levels, const store::Case& run_case);

analysis::SizesByStep sizes_of(const TrainedLevel& level);

// A mean with the least and the most of its repeats; `why`: said where there is none.
document::Cell spread_cell(const std::optional<analysis::Spread>& spread, document::NumberFormat format,
                           const std::string& why = {});

}  // namespace strata::report
