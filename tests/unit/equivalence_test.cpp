// SPDX-License-Identifier: Apache-2.0
// Whether trainings end alike: the words, and how often they are wrong in simulated trainings.
#include "stats/equivalence.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stats/sample.hpp"

namespace strata::stats {
namespace {

std::vector<double> draws(std::mt19937& random, int count, double mean, double deviation) {
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<double> all(static_cast<std::size_t>(count));
  for (auto& one : all) one = normal(random);
  return all;
}

EquivalenceVerdict of(const std::vector<double>& differences, double margin, double floor = 0) {
  const auto test = paired_test(differences, floor);
  return judge_likeness(test, margin, test.excludes_zero());
}

TEST(a_paired_test, has_students_intervals) {
  const auto test = paired_test(std::vector<double>{1, 2, 3, 4}, 0);
  EXPECT_DOUBLE_EQ(test.mean, 2.5);
  EXPECT_NEAR(test.deviation, 1.2909944487, 1e-9);
  EXPECT_NEAR(test.half95, 3.1824463053 * 1.2909944487 / 2, 1e-6);
  EXPECT_NEAR(test.half90, 2.3533634348 * 1.2909944487 / 2, 1e-6);
  EXPECT_NEAR(test.p, 0.0304662, 1e-6);
}

TEST(a_paired_test, of_trainings_that_are_the_same_to_the_bit_is_as_wide_as_one_image) {
  const auto test = paired_test(std::vector<double>{0, 0, 0}, 0.001);
  EXPECT_DOUBLE_EQ(test.half95, 0.001);
  EXPECT_DOUBLE_EQ(test.p, 1);
  EXPECT_EQ(judge_likeness(test, 0.01, false), EquivalenceVerdict::equivalent);
}

TEST(a_verdict, needs_two_repeats) {
  EXPECT_EQ(of({0.0}, 1), EquivalenceVerdict::inconclusive);
  EXPECT_FALSE(repeats_to_decide(paired_test(std::vector<double>{0.5}, 0), 1));
}

TEST(a_verdict, may_be_equivalent_although_the_difference_is_certain) {
  const std::vector<double> small{0.4, 0.5, 0.6, 0.5, 0.5, 0.4, 0.6};
  EXPECT_TRUE(paired_test(small, 0).excludes_zero());
  EXPECT_EQ(of(small, 1), EquivalenceVerdict::equivalent);
  EXPECT_EQ(of(small, 0.3), EquivalenceVerdict::different);
}

TEST(a_verdict, says_different_of_equal_trainings_in_at_most_five_of_a_hundred) {
  std::mt19937 random(7);
  int different = 0;
  for (int i = 0; i < 4000; ++i) different += of(draws(random, 10, 0, 1), 0) == EquivalenceVerdict::different;
  EXPECT_LE(different, 0.055 * 4000);
  EXPECT_GE(different, 0.04 * 4000) << "margin 0 leaves the t test alone";
}

TEST(a_verdict, says_equivalent_at_a_difference_of_the_margin_in_at_most_five_of_a_hundred) {
  std::mt19937 random(8);
  int equivalent = 0;
  for (int i = 0; i < 4000; ++i) equivalent += of(draws(random, 10, 1, 0.8), 1) == EquivalenceVerdict::equivalent;
  EXPECT_LE(equivalent, 0.055 * 4000);
}

TEST(holm, rejects_in_turn_until_one_stands) {
  EXPECT_EQ(holm(std::vector<double>{0.01, 0.04, 0.03, 0.005}, 0.05), (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(holm(std::vector<double>{0.04}, 0.05), std::vector<bool>{true});
  EXPECT_TRUE(holm({}, 0.05).empty());
}

TEST(holm, is_wrong_about_any_of_five_equal_levels_in_at_most_five_of_a_hundred) {
  std::mt19937 random(9);
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> p;
    for (int level = 0; level < 5; ++level) p.push_back(paired_test(draws(random, 10, 0, 1), 0).p);
    const auto rejected = holm(p, 0.05);
    wrong += std::find(rejected.begin(), rejected.end(), true) != rejected.end();
  }
  EXPECT_LE(wrong, 0.065 * 2000);
}

TEST(the_repeats_that_would_decide, are_more_where_trainings_scatter_more) {
  std::mt19937 random(10);
  const auto quiet = repeats_to_decide(paired_test(draws(random, 5, 0, 0.5), 0), 1);
  const auto loud = repeats_to_decide(paired_test(draws(random, 5, 0, 3), 0), 1);
  ASSERT_TRUE(quiet);
  ASSERT_TRUE(loud);
  EXPECT_LT(*quiet, *loud);
  EXPECT_FALSE(repeats_to_decide(paired_test(std::vector<double>{0.999, 1.0, 1.001}, 0), 1))
      << "at the margin no number does";
}

}  // namespace
}  // namespace strata::stats
