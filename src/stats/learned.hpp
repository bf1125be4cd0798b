// SPDX-License-Identifier: Apache-2.0
// What earlier runs showed of two levels: by how much their ratio differs from restart to restart. It is learned by
// pair, since a level alone cannot be told from the machine's drift between restarts. Method: docs/measuring.md.
#pragma once

#include <span>

namespace strata::stats {

// Earlier restarts count as at most so many degrees of freedom, however many they are: the spread of a level is not
// quite the same in every run.
inline constexpr double most_learned_df = 20;

struct LearnedSpread {
  double variance = 0;         // of the log ratio of one restart
  double within = 0;           // the part of it that is noise within a restart
  double df = 0;               // degrees of freedom of `variance`; 0: nothing is known
  int restarts = 0, runs = 0;  // that showed it

  bool known() const { return df > 0; }
  bool operator==(const LearnedSpread&) const = default;
};

// Of several runs, each by its degrees of freedom. These add up, to most_learned_df at most, and are divided by the
// dispersion of the runs' variances (their chi-square over its degrees of freedom, as of counts; McCullagh and Nelder
// 1989) where it is above 1: a spread that differs from run to run says less of the next one.
LearnedSpread pool(std::span<const LearnedSpread> runs);

}  // namespace strata::stats
