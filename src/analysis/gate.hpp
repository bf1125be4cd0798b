// SPDX-License-Identifier: Apache-2.0
// Whether a change of a level's time passes a threshold above which it is a regression.
#pragma once

#include <cmath>
#include <string_view>

#include "stats/compare.hpp"

namespace strata::analysis {

enum class Gate { passes, open, slower, not_compared };

// `times_as_fast`: before over after. `threshold`: relative, 0.05 is slower by 5%. slower: the whole interval lies
// beyond it; open: a part does; not_compared: there is no interval.
inline Gate gate_of(const stats::Interval& times_as_fast, double threshold) {
  const double limit = 1 / (1 + threshold);
  if (std::isnan(times_as_fast.low) || std::isnan(times_as_fast.high)) return Gate::not_compared;
  if (times_as_fast.high < limit) return Gate::slower;
  return times_as_fast.low < limit ? Gate::open : Gate::passes;
}

inline std::string_view to_string(Gate gate) {
  switch (gate) {
    case Gate::passes:
      return "passes";
    case Gate::open:
      return "open";
    case Gate::slower:
      return "slower";
    case Gate::not_compared:
      break;
  }
  return "not_compared";
}

}  // namespace strata::analysis
