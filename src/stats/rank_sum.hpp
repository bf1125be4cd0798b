// SPDX-License-Identifier: Apache-2.0
// Whether one sample lies above another, by ranks alone (Wilcoxon 1945; Mann and Whitney 1947): what disturbs a few
// values, however much, decides nothing.
#pragma once

#include <span>

namespace strata::stats {

// The chance that so many pairs have the value of `upper` above that of `lower`, or more, where both are drawn from one
// distribution. Exact up to 4000 pairs and 100 upper values, else by the normal approximation with a correction for
// continuity. Ties count as not above. 1 if either is empty.
double rank_sum_chance(std::span<const double> upper, std::span<const double> lower);

}  // namespace strata::stats
