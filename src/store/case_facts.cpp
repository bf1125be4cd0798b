// SPDX-License-Identifier: Apache-2.0
#include "store/case_facts.hpp"

#include <algorithm>
#include <limits>

#include "stats/disturbed.hpp"

namespace strata::store {

double LoadFacts::taken() const {
  return others ? *others + steal.value_or(0) : begin.value_or(std::numeric_limits<double>::quiet_NaN());
}

double LoadFacts::most() const {
  return std::max(begin.value_or(0), others.value_or(0));
}

bool LoadFacts::busy() const {
  return other_run || most() > stats::tolerated_load || taken() > stats::tolerated_load;
}

}  // namespace strata::store
