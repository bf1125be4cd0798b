// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "stats/rank_sum.hpp"

namespace strata::stats {
namespace {

std::vector<double> steps(double from, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(from + i);
  return values;
}

// By scipy.stats.mannwhitneyu(upper, lower, alternative="greater").
TEST(RankSumChance, is_scipys_exact_one_and_the_normal_one_of_larger_samples) {
  const std::vector<double> upper{5, 6, 7, 8.5, 9, 10}, lower{1, 2, 3, 4, 5.5, 6.5, 7.5};
  EXPECT_NEAR(rank_sum_chance(upper, lower), 0.01748251748251748, 1e-15);
  EXPECT_NEAR(rank_sum_chance(steps(5, 3), steps(1, 4)), 0.02857142857142857, 1e-15);
  EXPECT_NEAR(rank_sum_chance(steps(50, 40), steps(30.5, 50)), 3.841014079886459e-06, 1e-15);
  EXPECT_NEAR(rank_sum_chance(steps(50, 100), steps(10.5, 100)), 4.80469525556799e-15, 1e-20);
}

TEST(RankSumChance, is_near_one_for_a_sample_that_lies_below_and_one_for_none) {
  EXPECT_NEAR(rank_sum_chance(steps(1, 5), steps(10, 5)), 1, 1e-12);
  EXPECT_EQ(rank_sum_chance({}, steps(1, 5)), 1);
  EXPECT_NEAR(rank_sum_chance(steps(1, 4), steps(1, 4)), 0.8286, 0.2) << "ties count as not above";
}

}  // namespace
}  // namespace strata::stats
