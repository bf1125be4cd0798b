// SPDX-License-Identifier: Apache-2.0
// Dropout judged by losses and gradients that its masks scatter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "proof/train_checks.hpp"
#include "unit/train_bundle.hpp"

namespace strata::proof {
namespace {

using ::testing::HasSubstr;
using Kind = OutputVerdict::Kind;

std::vector<double> losses(stats::Random& random, double mean, double sd, int n = 64) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(mean + sd * testing::normal(random));
  return out;
}

TEST(Dropout, equal_distributions_are_not_accused) {
  stats::Random random(1);
  int accused = 0;
  for (int i = 0; i < 5000; ++i)
    accused += !check_dropout(losses(random, 2.3, 0.1), losses(random, 2.3, 0.1))->equal_work();
  EXPECT_LE(accused, 4);  // 1e-4 each for mean and scatter
}

TEST(Dropout, another_mean_scatter_or_no_masks_are_seen) {
  stats::Random random(2);
  const auto eager = losses(random, 2.3, 0.1);
  EXPECT_THAT(check_dropout(eager, losses(random, 2.5, 0.1))->reason, HasSubstr("mean loss"));
  EXPECT_THAT(check_dropout(eager, losses(random, 2.3, 0.4))->reason, HasSubstr("scatter"));
  EXPECT_THAT(check_dropout(eager, std::vector<double>(64, 2.3))->reason, HasSubstr("dropout is not applied"));
  auto twice = losses(random, 2.3, 0.1);
  for (std::size_t i = 1; i < twice.size(); i += 2) twice[i] = twice[i - 1];
  EXPECT_THAT(check_dropout(eager, twice)->reason, HasSubstr("masks are drawn once"));
  EXPECT_EQ(check_dropout(eager, {std::nan(""), 1})->kind, Kind::unequal);
}

TEST(Dropout, a_scatter_near_rounding_does_not_accuse_and_one_below_it_shows_nothing) {
  stats::Random random(3);
  constexpr double rounding = 8e-6;
  const auto eager = losses(random, 7.2, 1e-5);
  const auto off = losses(random, 7.2 + 1.2e-5, 1e-5);  // of a level whose loss is off by rounding
  EXPECT_FALSE(check_dropout(eager, off)->equal_work());
  EXPECT_TRUE(check_dropout(eager, off, rounding)->equal_work());
  EXPECT_FALSE(check_dropout(eager, losses(random, 7.2 + 1e-4, 1e-5), rounding)->equal_work());
  EXPECT_FALSE(check_dropout(losses(random, 7.2, 1e-6), off, rounding).has_value());
}

// Variances of `n` groups of gradients, each the sum over `units` independent parts.
std::vector<double> variances(stats::Random& random, double variance, int n, int units = 60) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int unit = 0; unit < units; ++unit) {
      const double part = testing::normal(random);
      sum += part * part;
    }
    out.push_back(variance * sum / units);
  }
  return out;
}

TEST(Dropout, equal_variances_of_gradients_are_not_accused) {
  stats::Random random(4);
  double worst = 0, squares = 0;
  constexpr int trials = 4000;
  for (int i = 0; i < trials; ++i) {
    const auto verdict = check_variances({{"w", variances(random, 1, 96)}}, {{"w", variances(random, 1, 32)}});
    EXPECT_TRUE(verdict->equal_work());
    worst = std::max(worst, verdict->worst_ratio);
    squares += verdict->worst_ratio * verdict->worst_ratio / trials;
  }
  EXPECT_LT(worst, 0.95);                       // 4.2 standard errors of 4,000 draws, where 5.4 are allowed
  EXPECT_NEAR(std::sqrt(squares), 0.18, 0.02);  // one standard error of the 5.4 that are allowed
}

TEST(Dropout, a_probability_that_is_wrong_by_two_hundredths_is_seen) {
  stats::Random random(5);
  for (const double p : {0.45, 0.48, 0.52}) {
    const double variance = p / (1 - p);  // that of 0.5 is 1
    const auto actual = variances(random, variance, 256), expected = variances(random, 1, 768);
    const auto verdict = check_variances({{"w", expected}}, {{"w", actual}});
    EXPECT_EQ(verdict->kind, Kind::unequal) << p;
    EXPECT_THAT(verdict->reason, HasSubstr("another probability"));
  }
}

TEST(Dropout, gradients_that_do_not_differ_or_are_missing_are_refused) {
  stats::Random random(6);
  const auto eager = variances(random, 1, 64);
  EXPECT_THAT(check_variances({{"w", eager}}, {{"w", std::vector<double>(32, 0.0)}})->reason, HasSubstr("masks"));
  EXPECT_EQ(check_variances({{"w", eager}}, {})->kind, Kind::unequal);
  EXPECT_EQ(check_variances({{"w", eager}}, {{"w", {1, std::nan("")}}})->kind, Kind::unequal);
  EXPECT_FALSE(check_variances({}, {}).has_value());
  EXPECT_TRUE(check_variances({{"w", std::vector<double>(8, 0.0)}}, {{"w", std::vector<double>(8, 0.0)}})->equal_work())
      << "a gradient that no mask reaches";
}

}  // namespace
}  // namespace strata::proof
