// SPDX-License-Identifier: Apache-2.0
// What a level's iterations take beside time and memory, from the looks that each restart had at its process
// (measure/restart_meter.hpp) and from its blocks.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "store/record.hpp"

namespace strata::analysis {

// Without a value: why. Never a zero for what was not seen.
struct Meter {
  std::optional<double> value;  // in the metric's unit
  std::string why_not;
};

// Of a measured row: cpu_utilisation, energy and what core/meter.def names; means over the iterations of all restarts
// that were seen whole.
std::map<core::Metric, Meter> meters_of(const store::Row& row, int threads);

// Processor time over wall time and `threads`: 1 where all of them are busy. nullopt: no block has it.
std::optional<double> cpu_utilisation(const store::Row& row, int threads);

}  // namespace strata::analysis
