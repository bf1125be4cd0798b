// SPDX-License-Identifier: Apache-2.0
// What earlier runs teach: how they are pooled, what they do to an interval, and its coverage, false alarms and power
// over levels whose spread differs from run to run.
#include <gtest/gtest.h>

#include <cmath>

#include "stats/compare.hpp"
#include "unit/normal.hpp"

namespace strata::stats {
namespace {

using Restarts = std::vector<std::vector<double>>;

// Restarts at these values, without noise within them.
Restarts at(const std::vector<double>& values) {
  Restarts out;
  for (const double value : values) out.emplace_back(6, value);
  return out;
}

const LearnedSpread kCalm{
    .variance = 1e-4, .within = 0, .df = 15, .restarts = 18, .runs = 3};  // 1% from restart to restart

TEST(LearnedSpread, is_pooled_by_degrees_of_freedom_which_are_bounded) {
  EXPECT_FALSE(pool({}).known());
  const std::vector<LearnedSpread> two{{.variance = 4e-4, .within = 1e-5, .df = 3, .restarts = 4, .runs = 1},
                                       {.variance = 1e-4, .within = 2e-5, .df = 6, .restarts = 7, .runs = 1}};
  const auto all = pool(two);
  EXPECT_NEAR(all.variance, 2e-4, 1e-12);
  EXPECT_NEAR(all.within, (3 * 1e-5 + 6 * 2e-5) / 9, 1e-12);
  EXPECT_NEAR(all.df, 9 / 2.25, 1e-9) << "they part: 3/2 * 1 + 6/2 / 4 over 1";
  EXPECT_EQ(all.restarts, 11);
  EXPECT_EQ(all.runs, 2);
  const auto many = pool(std::vector<LearnedSpread>(10, kCalm));
  EXPECT_EQ(many.df, most_learned_df);
  EXPECT_EQ(many.restarts, 180) << "what is said is all that was seen";
  EXPECT_NEAR(many.variance, 1e-4, 1e-12);
}

TEST(LearnedSpread, counts_less_where_runs_part_by_more_than_chance) {
  const auto of = [](std::vector<double> variances) {
    std::vector<LearnedSpread> runs;
    for (const double v : variances) runs.push_back({.variance = v, .df = 5, .restarts = 6, .runs = 1});
    return pool(runs);
  };
  EXPECT_EQ(of({1e-4, 1.5e-4, 0.8e-4}).df, 15) << "as variances of six restarts do";
  // Around 3: 5/2 * (2/3)^2 twice, 5/2 * (4/3)^2 once, over 2: 10/3.
  EXPECT_NEAR(of({1e-4, 1e-4, 7e-4}).df, 15 / (10.0 / 3), 1e-9);
  EXPECT_NEAR(of({1e-4, 1e-4, 7e-4}).variance, 3e-4, 1e-12);
}

TEST(LearnedSpread, of_one_run_is_its_scatter_with_one_degree_of_freedom_less_than_restarts) {
  const auto one = learned_from(compare(at({.01, .012, .008, .014}), 0.015));
  EXPECT_NEAR(one.variance, 6.6667e-6, 1e-9);
  EXPECT_EQ(one.df, 3);
  EXPECT_EQ(one.runs, 1);
  EXPECT_FALSE(learned_from(compare(at({.01}), 0.015)).known()) << "one restart has no scatter";
  EXPECT_FALSE(learned_from(compare({}, 0.015)).known());
}

// SciPy: t.ppf(.995, 20) = 2.845340; the variance is (15 * 1e-4 + 5 * 1e-4) / 20.
TEST(LearnedSpread, spread_that_restarts_agree_with_gives_students_t_of_both_together) {
  const double s = 0.01 * std::sqrt(5.0 / 6);
  const auto six = at({.02 + s, .02 - s, .02 + s, .02 - s, .02 + s, .02 - s});
  const auto c = compare(six, 0.015, kCalm);
  EXPECT_NEAR(c.scatter, 0.01, 1e-12);
  EXPECT_EQ(c.half_width.basis, Basis::learned);
  EXPECT_NEAR(c.half_width.width, 2.845340 * 0.01 / std::sqrt(6.0), 1e-7);
  EXPECT_NEAR(learned_process_effect(c), 0.01 / std::sqrt(2.0), 1e-9);
  EXPECT_LT(c.half_width.width, compare(six, 0.015).half_width.width) << "the assumption no longer widens it";
}

TEST(LearnedSpread, spread_counts_the_less_the_less_it_explains_what_restarts_show) {
  const auto width_per_scatter = [](double scatter) {
    const double s = scatter * std::sqrt(5.0 / 6);
    return compare(at({s, -s, s, -s, s, -s}), 0.015, kCalm).half_width.width / scatter;
  };
  EXPECT_NEAR(width_per_scatter(0.3), 4.032143 / std::sqrt(6.0), 1e-3)
      << "t of these six alone, as if nothing were known";
  EXPECT_LT(width_per_scatter(0.01), width_per_scatter(0.3));
  double before = 0;
  for (const double scatter : {0.002, 0.01, 0.015, 0.018, 0.02, 0.025, 0.03, 0.1}) {
    const double width = width_per_scatter(scatter) * scatter;
    EXPECT_GT(width, before) << scatter;
    before = width;
  }
}

TEST(LearnedSpread, spread_of_quieter_runs_gets_the_noise_within_these_restarts) {
  Restarts noisy;
  for (int r = 0; r < 6; ++r) noisy.push_back({.03, -.03, .02, -.02, .01, -.01, 0, .04, -.04});
  const auto c = compare(noisy, 0.015, {.variance = 1e-6, .within = 1e-6, .df = 15, .restarts = 18, .runs = 3});
  ASSERT_GT(c.within_se, 0.005);
  EXPECT_GE(c.half_width.width, 2.5758 * c.within_se / std::sqrt(6.0));
  EXPECT_EQ(learned_process_effect(c), 0) << "all of it is noise";
}

TEST(LearnedSpread, spread_says_nothing_for_fewer_than_three_restarts) {
  for (const auto& few : {std::vector{.2}, std::vector{.2, .21}})
    EXPECT_EQ(compare(at(few), 0.015, kCalm).half_width.basis, Basis::most) << "nothing shows that they agree with it";
}

TEST(LearnedSpread, spread_is_what_restarts_are_called_busy_and_planned_by) {
  const LearnedSpread wild{.variance = 0.01, .within = 0, .df = 15, .restarts = 18, .runs = 3};
  const auto steady = at({.1, -.1, .12, -.08}), calm = at({.02, .021, .019, .02});
  EXPECT_TRUE(too_busy(compare(steady, 0.015), 0));
  EXPECT_FALSE(too_busy(compare(steady, 0.015, wild), 0)) << "this level is known to do that";
  EXPECT_NEAR(expected_between(compare(steady, 0.015, wild)), 0.1, 1e-12);
  EXPECT_LT(restarts_to_resolve(compare(calm, 0.015, kCalm), 0.01).value_or(1000),
            restarts_to_resolve(compare(calm, 0.015), 0.01).value_or(0));
  // 2.79 (t with some 30 degrees of freedom) * 10% / sqrt(R) <= 5%
  EXPECT_NEAR(restarts_to_reach(compare(at({.1, -.04}), 0.015, wild), 0.05).value_or(0), 28, 3);
}

// Simulated runs. A level's spread is `sigma` a process, times a factor that each run draws.
using Factor = double (*)(Random&);

struct Mixture {
  const char* name;
  Factor factor;
};

const Mixture kMixtures[] = {
    {"the same in every run", [](Random&) { return 1.0; }},
    {"twice in half of the runs", [](Random& random) { return random.below(2) ? 2.0 : 1.0; }},
    {"three times in one run of five", [](Random& random) { return random.below(5) ? 1.0 : 3.0; }},
    {"lognormal, a third up or down", [](Random& random) { return std::exp(0.3 * normal(random)); }},
};

Restarts draw_run(Random& random, int restarts, double effect, double sigma, Factor factor) {
  const double own = sigma * factor(random);
  Restarts out;
  for (int r = 0; r < restarts; ++r) {
    const double offset = effect + own * (normal(random) - normal(random));
    out.emplace_back();
    for (int i = 0; i < 6; ++i) out.back().push_back(offset + 0.002 * normal(random));
  }
  return out;
}

struct Rates {
  double covered = 0, found = 0;
};

constexpr int kSimulated = 1500;
constexpr double kError = 0.0085;  // 3.3 standard errors of a rate of 1% in so many runs

Rates simulate_learning(int earlier, int restarts, double effect, double sigma, Factor factor, std::uint64_t seed) {
  Random random(seed);
  Rates rates;
  for (int i = 0; i < kSimulated; ++i) {
    std::vector<LearnedSpread> runs;
    for (int k = 0; k < earlier; ++k)
      runs.push_back(learned_from(compare(draw_run(random, 6, effect, sigma, factor), 0)));
    const auto c = compare(draw_run(random, restarts, effect, sigma, factor), 0.015, pool(runs));
    const auto direction = judge(c, 0.01).direction;
    rates.covered += c.log_ratio.low <= effect && effect <= c.log_ratio.high;
    rates.found += direction == Direction::faster || direction == Direction::slower;
  }
  return {rates.covered / kSimulated, rates.found / kSimulated};
}

TEST(LearnedRuns, intervals_cover_the_truth_99_times_in_100_where_the_spread_is_the_same_in_every_run) {
  for (const double sigma : {0.0025, 0.05})
    for (const int restarts : {3, 6, 12})
      for (const int earlier : {1, 3})
        EXPECT_GE(simulate_learning(earlier, restarts, 0.013, sigma, kMixtures[0].factor, 31).covered, 0.99 - kError)
            << sigma << ", " << restarts << " restarts, " << earlier << " earlier runs";
}

// bench/simulated_learning.py has 0.8 to 1.3% where runs differ: three runs cannot show that a fourth will be another.
TEST(LearnedRuns, a_level_against_itself_raises_some_1_alarm_in_100_though_its_spread_varies) {
  std::uint64_t seed = 40;
  for (const auto& mixture : kMixtures)
    for (const double sigma : {0.0075, 0.05})
      for (const int earlier : {1, 3})
        EXPECT_LE(simulate_learning(earlier, 6, 0, sigma, mixture.factor, ++seed).found,
                  (&mixture == kMixtures ? 0.01 : 0.013) + kError)
            << mixture.name << ", " << sigma << ", " << earlier << " earlier runs";
}

TEST(LearnedRuns, find_2_percent_of_a_steady_level_after_three_runs_of_six) {
  const auto steady = [](int earlier, double sigma, int restarts = 6) {
    return simulate_learning(earlier, restarts, -std::log(1.02), sigma, kMixtures[0].factor, 33).found;
  };
  EXPECT_LT(steady(0, 0.0075), 0.6) << "what is assumed hides it";
  EXPECT_GE(steady(3, 0.0075), 0.92 - 2 * kError) << "94.6% is what 20 degrees of freedom can give at all";
  EXPECT_GE(steady(3, 0.005), 0.99);
  EXPECT_GE(steady(3, 0.0075, 8), 0.97) << "the standard preset has eight";
}

}  // namespace
}  // namespace strata::stats
