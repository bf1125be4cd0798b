// SPDX-License-Identifier: Apache-2.0
// Intervals and verdicts against numbers from SciPy, and their coverage, false alarms and power in simulated runs.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "stats/compare.hpp"
#include "stats/schedule.hpp"

namespace strata::stats {
namespace {

using Differences = std::vector<std::vector<double>>;

// Normal draws by Box and Muller from the project's own generator: the same on every machine.
double normal(Random& random) {
  const double u = (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// Restarts of pairs whose processes have effects of their own, with a share of blocks that something slowed by half.
Differences simulate(Random& random, int restarts, int pairs, double effect, double sigma, double noise,
                     double slowed = 0.05) {
  Differences out;
  for (int r = 0; r < restarts; ++r) {
    const double offset = effect + sigma * (normal(random) - normal(random));
    std::vector<double> sample;
    for (int i = 0; i < pairs; ++i) {
      double difference = offset + noise * normal(random);
      if (random.below(1000) < 1000 * slowed) difference += random.below(2) ? 0.4 : -0.4;
      sample.push_back(difference);
    }
    out.push_back(sample);
  }
  return out;
}

Comparison made(double value, double half_width) {
  Comparison c;
  c.log_ratio = {value, value - half_width, value + half_width};
  c.per_restart = {value, value};
  return c;
}

TEST(compare, known_process_effect_gives_the_interval_computed_with_scipy) {
  const Differences d{{.020, .022, .018, .021, .019, .060}, {.030, .028, .031, .029, .033}};
  const Comparison c = compare(d, 0.0045);
  EXPECT_NEAR(c.log_ratio.value, 0.02525, 1e-12);
  EXPECT_NEAR(c.log_ratio.high - c.log_ratio.value, 0.011844159596602268, 1e-10);
  EXPECT_NEAR(c.log_ratio.value - c.log_ratio.low, 0.011844159596602268, 1e-10);
  EXPECT_EQ(c.restarts(), 2);
  EXPECT_EQ(c.differences, 11u);
  EXPECT_NEAR(c.ratio().value, std::exp(0.02525), 1e-12);
}

TEST(compare, many_differences_give_the_plain_normal_interval) {
  Random random(1);
  const Comparison c = compare(simulate(random, 4, 3000, 0, 0.004, 0.01), 0.0045);
  const double se = std::sqrt((c.within_se * c.within_se + 2 * 0.0045 * 0.0045) / 4);
  EXPECT_NEAR(c.log_ratio.high - c.log_ratio.value, 2.5758293 * se, 1e-6);
  EXPECT_NEAR(c.standard_error, se, 1e-12);
}

TEST(compare, unknown_process_effect_uses_students_t_over_restarts) {
  Differences d;
  for (double e : {.01, .012, .008, .011, .009, .014, .006, .010}) d.push_back(std::vector<double>(6, e));
  const Comparison c = compare(d, std::nullopt);
  EXPECT_NEAR(c.log_ratio.low, 0.006969358564375139, 1e-12);  // scipy.stats.t.interval(.99, 7, ...)
  EXPECT_NEAR(c.log_ratio.high, 0.013030641435624858, 1e-12);
  EXPECT_TRUE(std::isnan(c.process_sigma));
}

TEST(compare, one_restart_is_allowed_when_the_process_effect_is_known) {
  const Comparison c = compare(Differences{{.05, .051, .049, .052, .048, .05}}, 0.0045);
  EXPECT_NEAR(c.log_ratio.value, 0.05, 1e-3);
  EXPECT_GT(c.log_ratio.low, 0.03);
  EXPECT_EQ(judge(c, 0.01).direction, Direction::faster);
  EXPECT_TRUE(std::isinf(compare(Differences{{.05, .051, .049, .052, .048, .05}}, std::nullopt).log_ratio.high));
}

TEST(compare, a_restart_with_few_differences_borrows_the_spread_of_the_others) {
  const Differences whole{{.02, .022, .018, .021, .019, .02}, {.03, .028, .031, .029, .033, .03}};
  Differences few = whole;
  few.push_back({.024, .026});
  const Comparison c = compare(few, 0.0045);
  EXPECT_EQ(c.restarts(), 3);
  EXPECT_NEAR(c.per_restart[2], 0.025, 1e-12);
  EXPECT_LT(c.log_ratio.high - c.log_ratio.low,
            compare(whole, 0.0045).log_ratio.high - compare(whole, 0.0045).log_ratio.low);
}

TEST(compare, too_few_differences_for_a_spread_leave_the_interval_open) {
  const Comparison one = compare(Differences{{.5}}, 0.0045);
  EXPECT_EQ(one.log_ratio.value, .5);
  EXPECT_TRUE(std::isinf(one.log_ratio.low));
  EXPECT_EQ(judge(one, 0.01).direction, Direction::not_resolved);
  const Comparison two = compare(Differences{{.5}, {.5}}, 0.0045);  // only their scatter, 0 here by luck
  EXPECT_GT(two.log_ratio.high - two.log_ratio.value, 2.576 * 0.0045);
  const Comparison pair = compare(Differences{{.5, .52}}, 0.0045);
  EXPECT_TRUE(std::isfinite(pair.log_ratio.low));
}

TEST(compare, nothing_measured_gives_no_number_and_no_verdict) {
  const Comparison c = compare(Differences{{}, {}}, 0.0045);
  EXPECT_TRUE(std::isnan(c.log_ratio.value));
  EXPECT_EQ(c.restarts(), 0);
  EXPECT_EQ(judge(c, 0.01).direction, Direction::not_resolved);
  EXPECT_FALSE(restarts_to_resolve(c, 0.01));
}

TEST(compare, takes_differences_only_within_a_round_where_both_were_measured) {
  const Blocks blocks{{{100, 50}, {nan, 50}, {200, 100, 7}}, {{100}}};
  const auto d = log_differences(blocks, 0, 1);
  ASSERT_EQ(d.size(), 2u);
  EXPECT_EQ(d[0].size(), 2u);
  EXPECT_NEAR(d[0][1], std::log(2), 1e-12) << "reference over level: above 0 is faster";
  EXPECT_TRUE(d[1].empty());
}

TEST(compare, levels_that_took_turns_by_restarts_get_a_wider_interval) {
  const std::vector<double> reference{4.60, 4.61, 4.59, 4.60}, level{4.50, 4.51, 4.49, 4.50};
  const Comparison c = compare_unpaired(reference, level, 0.0045);
  EXPECT_NEAR(c.log_ratio.value, 0.1, 1e-12);
  EXPECT_GT(c.log_ratio.high - c.log_ratio.value, 2.576 * 0.0045 / std::sqrt(2.0));
  EXPECT_TRUE(std::isinf(compare_unpaired(std::vector<double>{4.6}, level, 0.0045).log_ratio.low));
}

TEST(judge, follows_the_decision_rule) {
  EXPECT_EQ(judge(made(0.03, 0.02), 0.01).direction, Direction::faster);
  EXPECT_EQ(judge(made(-0.03, 0.02), 0.01).direction, Direction::slower);
  EXPECT_EQ(judge(made(0.03, 0.04), 0.01).direction, Direction::not_resolved) << "the interval holds 0";
  EXPECT_EQ(judge(made(0.008, 0.002), 0.01).direction, Direction::same) << "below the minimum effect";
  EXPECT_EQ(judge(made(0.0, 0.03), 0.01).direction, Direction::not_resolved);
  EXPECT_EQ(judge(made(0.008, 0.002), 0.001).direction, Direction::faster) << "a smaller minimum effect was asked for";
}

TEST(judge, same_names_the_smallest_bound_that_holds) {
  const Verdict v = judge(made(-0.004, 0.006), 0.01);
  EXPECT_EQ(v.direction, Direction::same);
  EXPECT_NEAR(v.same_within, std::expm1(0.010), 1e-12);
  EXPECT_TRUE(std::isnan(judge(made(0.5, 0.01), 0.01).same_within));
}

TEST(plan, reachable_precision_and_restarts_agree) {
  EXPECT_NEAR(reachable_precision(6, 0.0045), 0.00671, 1e-4);  // 2.576 * sqrt(2/6) * 0.45%
  for (int r : {1, 2, 6, 40}) EXPECT_EQ(restarts_for_precision(reachable_precision(r, 0.03), 0, 0.03), r);
  EXPECT_FALSE(restarts_for_precision(1e-7, 0, 0.03));
  EXPECT_FALSE(restarts_for_precision(0, 0, 0.03));
}

TEST(plan, restarts_to_resolve_are_enough_if_the_estimate_stays) {
  Random random(3);
  for (double effect : {0.0, 0.004, 0.03, -0.05}) {
    const Comparison now = compare(simulate(random, 2, 40, effect, 0.001, 0.01), 0.015);
    const auto needed = restarts_to_resolve(now, 0.01);
    ASSERT_TRUE(needed) << effect;
    const double se = std::sqrt((now.within_se * now.within_se + 2 * 0.015 * 0.015) / *needed);
    EXPECT_NE(judge(made(now.log_ratio.value, z99 * se * 0.9999), 0.01).direction, Direction::not_resolved) << effect;
    const double fewer = std::sqrt((now.within_se * now.within_se + 2 * 0.015 * 0.015) / std::max(1, *needed - 1));
    if (*needed > 1) {
      EXPECT_EQ(judge(made(now.log_ratio.value, z99 * fewer), 0.01).direction, Direction::not_resolved) << effect;
    }
  }
}

TEST(plan, smallest_visible_shrinks_with_restarts_but_not_below_the_minimum_effect) {
  EXPECT_GT(smallest_visible(2, 0.001, 0.015, 0.01), smallest_visible(8, 0.001, 0.015, 0.01));
  EXPECT_GT(smallest_visible(1000, 0.0001, 0.0001, 0.01), 0.01);
  EXPECT_TRUE(std::isinf(smallest_visible(0, 0, 0.015, 0.01)));
}

TEST(too_busy, is_said_when_restarts_scatter_or_most_pairs_were_dropped) {
  Differences calm, wild;
  for (double e : {0.0, 0.004, -0.004}) calm.push_back(std::vector<double>(10, e));
  for (double e : {0.0, 0.05, -0.05}) wild.push_back(std::vector<double>(10, e));
  EXPECT_FALSE(too_busy(compare(calm, 0.0045), 0.1));
  EXPECT_TRUE(too_busy(compare(wild, 0.0045), 0.1));
  EXPECT_TRUE(too_busy(compare(calm, 0.0045), 0.61));
}

// 2,000 simulated runs each; the bounds leave 3.3 standard errors of 2,000 draws.
struct Outcome {
  double covered = 0, alarmed = 0;
};
Outcome run_many(int restarts, int pairs, double effect, double sigma, std::optional<double> assumed,
                 std::uint64_t seed) {
  Random random(seed);
  Outcome out;
  constexpr int runs = 2000;
  for (int i = 0; i < runs; ++i) {
    const Comparison c = compare(simulate(random, restarts, pairs, effect, sigma, 0.01), assumed);
    out.covered += c.log_ratio.low <= effect && effect <= c.log_ratio.high;
    const Direction direction = judge(c, 0.01).direction;
    out.alarmed += direction == Direction::faster || direction == Direction::slower;
  }
  return {out.covered / runs, out.alarmed / runs};
}

TEST(simulated_runs, the_interval_covers_the_truth_99_times_in_100) {
  for (int restarts : {1, 2, 3, 6})
    for (int pairs : {6, 40}) {
      const double covered = run_many(restarts, pairs, 0.013, 0.0045, 0.0045, 17).covered;
      EXPECT_GE(covered, 0.9825) << restarts << " restarts, " << pairs << " pairs";
      EXPECT_LE(covered, 0.9999) << restarts << " restarts, " << pairs << " pairs: needlessly wide";
    }
}

TEST(simulated_runs, students_t_covers_the_truth_without_a_known_process_effect) {
  EXPECT_GE(run_many(8, 20, 0.013, 0.0045, std::nullopt, 18).covered, 0.9825);
}

TEST(simulated_runs, ignoring_the_process_effect_would_miss_the_truth) {
  EXPECT_LT(run_many(2, 40, 0.013, 0.0045, 0.0, 19).covered, 0.8)
      << "this is why the process effect is in the interval";
}

TEST(simulated_runs, equal_levels_raise_fewer_than_1_alarm_in_100) {
  for (int restarts : {2, 4, 6}) EXPECT_LE(run_many(restarts, 40, 0, 0.0045, 0.0045, 20).alarmed, 0.0173) << restarts;
}

TEST(simulated_runs, a_slowdown_of_2_percent_is_found_by_6_restarts) {
  EXPECT_GE(run_many(6, 40, -0.02, 0.0045, 0.0045, 21).alarmed, 0.95);
}

TEST(simulated_runs, the_smallest_visible_effect_is_found_19_times_in_20) {
  for (int restarts : {2, 6}) {
    const double within = 0.01 / std::sqrt(40.0) * 1.1;
    const double effect = std::log1p(smallest_visible(restarts, within, 0.0045, 0.01));
    const double found = run_many(restarts, 40, effect, 0.0045, 0.0045, 22).alarmed;
    EXPECT_GE(found, 0.93) << restarts;
    EXPECT_LE(found, 0.98) << restarts << ": a smaller effect would have been visible";
  }
}

}  // namespace
}  // namespace strata::stats
