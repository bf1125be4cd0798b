// SPDX-License-Identifier: Apache-2.0
// Which of several levels may be the fastest: multiple comparisons with the best (Hsu 1981; Edwards and Hsu 1983).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stats/compare.hpp"

namespace strata::stats {

// `reference` against `level`, as compare() has it: above 0 the level is faster.
using CompareTwo = std::function<Comparison(std::size_t reference, std::size_t level)>;

struct BestSet {
  std::vector<std::size_t> members;  // not excluded as the fastest, in order; never empty where `count` is above 0
  // Of several members: all lie within this share of each other by their intervals (0.03: within 3%); infinite:
  // unknown.
  double tie_within = std::numeric_limits<double>::infinity();
};

// A level is excluded where some other is faster by an interval that holds for all comparisons with it at once: 99%,
// one-sided, Bonferroni over the others, and by more than `minimum_effect` (relative). So the truly fastest is excluded
// with a probability of at most 1%.
BestSet not_excluded_as_best(std::size_t count, const CompareTwo& compare, double minimum_effect);

// Half width of the interval around a comparison's log ratio that leaves `tail` at each end, of the distribution that
// its 99% interval rests on; never narrower than that. Of several intervals that shall hold at once: 0.005 by their
// number.
double half_width_at(const Comparison& comparison, double tail);

}  // namespace strata::stats
