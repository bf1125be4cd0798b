// SPDX-License-Identifier: Apache-2.0
// Intervals and verdicts against numbers from SciPy, and their coverage, false alarms and power in simulated runs.
#include <gtest/gtest.h>

#include <cmath>

#include "stats/compare.hpp"
#include "stats/schedule.hpp"
#include "unit/normal.hpp"

namespace strata::stats {
namespace {

using Differences = std::vector<std::vector<double>>;

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

Comparison comparison_of(double value, double half_width) {
  Comparison c;
  c.log_ratio = {value, value - half_width, value + half_width};
  c.per_restart = {value, value};
  return c;
}

TEST(compare, known_process_effect_gives_the_interval_computed_with_scipy) {
  const Differences d{{.020, .022, .018, .021, .019, .060}, {.030, .028, .031, .029, .033}};
  const Comparison c = compare(d, 0.0045);
  EXPECT_NEAR(c.log_ratio.value, 0.02525, 1e-12);
  EXPECT_NEAR(c.assumed_only.high - c.assumed_only.value, 0.011844159596602268, 1e-10);
  EXPECT_NEAR(c.assumed_only.value - c.assumed_only.low, 0.011844159596602268, 1e-10);
  EXPECT_EQ(c.restarts(), 2);
  EXPECT_EQ(c.differences, 11u);
  EXPECT_NEAR(c.ratio().value, std::exp(0.02525), 1e-12);
}

TEST(compare, many_differences_give_the_plain_normal_interval) {
  Random random(1);
  const Comparison c = compare(simulate(random, 4, 3000, 0, 0.004, 0.01), 0.0045);
  const double se = std::sqrt((c.within_se * c.within_se + 2 * 0.0045 * 0.0045) / 4);
  EXPECT_NEAR(c.assumed_only.high - c.assumed_only.value, 2.5758293 * se, 1e-6);
  EXPECT_GE(c.half_width.width, 2.5758293 * se - 1e-6);
}

TEST(compare, restarts_that_scatter_more_than_is_assumed_give_students_t) {
  Differences d;
  for (double e : {.01, .012, .008, .011, .009, .014, .006, .010}) d.push_back(std::vector<double>(6, e));
  const Comparison c = compare(d, 0.001);
  EXPECT_NEAR(c.log_ratio.low, 0.006969358564375139, 1e-12);  // scipy.stats.t.interval(.99, 7, ...)
  EXPECT_NEAR(c.log_ratio.high, 0.013030641435624858, 1e-12);
  EXPECT_EQ(c.half_width.basis, Basis::restarts);
}

TEST(compare, an_assumed_process_effect_widens_what_restarts_show_and_never_narrows_it) {
  Differences d;
  for (double e : {.01, .012, .008, .011, .009, .014, .006, .010}) d.push_back(std::vector<double>(6, e));
  double before = 0;
  for (double sigma : {0.0, 0.001, 0.005, 0.02}) {
    const Comparison c = compare(d, sigma);
    EXPECT_GE(c.half_width.width, 0.0030306 - 1e-6) << sigma;
    EXPECT_GE(c.half_width.width, c.assumed_only.high - c.assumed_only.value - 1e-12) << sigma;
    EXPECT_GE(c.half_width.width, before) << sigma;
    before = c.half_width.width;
  }
  EXPECT_EQ(compare(d, 0.02).half_width.basis, Basis::assumed);
}

// Real data shape: processes of onednn on ResNet-18 part by 9%, where 1.5% is assumed.
TEST(compare, a_level_whose_processes_part_is_not_called_faster_than_itself) {
  Differences d;
  for (double e : {.21, .02, .17, -.05, .24, .11}) d.push_back(std::vector<double>(20, e));
  const Comparison c = compare(d, 0.015);
  EXPECT_GT(c.assumed_only.low, 0.08) << "what the assumption alone would claim";
  EXPECT_EQ(judge(c, 0.01).direction, Direction::inconclusive);
}

TEST(compare, fewer_than_three_restarts_claim_only_what_no_process_effect_that_was_seen_explains) {
  const auto of = [](std::vector<double> effects) {
    Differences d;
    for (double e : effects) d.push_back({e, e + .001, e - .001, e + .002, e - .002, e});
    return compare(d, 0.0045);
  };
  for (const auto& few : {std::vector{.2}, std::vector{.2, .2}}) {
    EXPECT_EQ(of(few).half_width.basis, Basis::most);
    EXPECT_EQ(judge(of(few), 0.01).direction, Direction::inconclusive) << "a pair of processes may part by 14%";
  }
  EXPECT_NEAR(of({.2}).half_width.width, 2.5758 * std::sqrt(2.0) * most_process_sigma, 0.001);
  EXPECT_NEAR(of({.2, .2}).half_width.width, 2.5758 * most_process_sigma, 0.001);
  EXPECT_EQ(judge(of({.5}), 0.01).direction, Direction::faster);
  EXPECT_EQ(judge(of({.2, .2, .2}), 0.01).direction, Direction::faster) << "three show their spread";
  EXPECT_EQ(judge(of({.0, .8}), 0.01).direction, Direction::inconclusive) << "they part by more than was ever seen";
  EXPECT_LT(of({.2, .2}).half_width.width, of({.2}).half_width.width);
}

TEST(compare, a_restart_with_few_differences_borrows_the_spread_of_the_others) {
  const Differences whole{{.02, .022, .018, .021, .019, .02}, {.03, .028, .031, .029, .033, .03}};
  Differences few = whole;
  few.push_back({.024, .026});
  const Comparison c = compare(few, 0.0045);
  EXPECT_EQ(c.restarts(), 3);
  EXPECT_NEAR(c.per_restart[2], 0.025, 1e-12);
  EXPECT_LT(c.assumed_only.high - c.assumed_only.low,
            compare(whole, 0.0045).assumed_only.high - compare(whole, 0.0045).assumed_only.low);
}

TEST(compare, too_few_differences_for_a_spread_leave_the_interval_open) {
  const Comparison one = compare(Differences{{.5}}, 0.0045);
  EXPECT_EQ(one.log_ratio.value, .5);
  EXPECT_TRUE(std::isinf(one.log_ratio.low));
  EXPECT_EQ(judge(one, 0.01).direction, Direction::inconclusive);
  const Comparison two = compare(Differences{{.5}, {.5}}, 0.0045);  // only their scatter, 0 here by luck
  EXPECT_TRUE(std::isinf(two.log_ratio.high));
  const Comparison three = compare(Differences{{.5}, {.5}, {.5}}, 0.0045);
  EXPECT_NEAR(three.half_width.width, 2.5758 * 0.0045 * std::sqrt(2.0 / 3), 1e-6) << "what is assumed stays";
  const Comparison pair = compare(Differences{{.5, .52}}, 0.0045);
  EXPECT_TRUE(std::isfinite(pair.log_ratio.low));
}

TEST(compare, nothing_measured_gives_no_number_and_no_verdict) {
  const Comparison c = compare(Differences{{}, {}}, 0.0045);
  EXPECT_TRUE(std::isnan(c.log_ratio.value));
  EXPECT_EQ(c.restarts(), 0);
  EXPECT_EQ(judge(c, 0.01).direction, Direction::inconclusive);
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
  // sd of each side 0.00816; Student's t(99.5%, 3) = 5.8409
  EXPECT_NEAR(c.half_width.width, 5.8409 * std::sqrt(2 * 0.00816497 * 0.00816497 / 4), 1e-5);
  const std::vector<double> calm{4.5, 4.5, 4.5, 4.5};
  EXPECT_NEAR(compare_unpaired(calm, calm, 0.03).half_width.width, 2.5758 * 0.03 * std::sqrt(2.0 / 4), 1e-5);
  const auto alone = compare_unpaired(std::vector<double>{4.6}, level, 0.0045);
  EXPECT_EQ(alone.half_width.basis, Basis::most) << "one side started once";
  EXPECT_GT(alone.half_width.width, 2.5758 * most_process_sigma);
}

TEST(compare, can_be_given_the_half_width_of_another_comparison) {
  const std::vector<double> calm{4.5, 4.5, 4.5, 4.5};
  const Comparison c = compare_unpaired(calm, calm, 0.01);
  HalfWidth wide;
  wide.width = 0.5;
  EXPECT_NEAR(no_narrower_than(c, wide).log_ratio.high, 0.5, 1e-12);
  EXPECT_TRUE(std::isinf(no_narrower_than(c, HalfWidth{}).log_ratio.high)) << "the other has no interval";
  wide.width = 0.001;
  EXPECT_EQ(no_narrower_than(c, wide).log_ratio.high, c.log_ratio.high);
}

TEST(judge, follows_the_decision_rule) {
  EXPECT_EQ(judge(comparison_of(0.03, 0.02), 0.01).direction, Direction::faster);
  EXPECT_EQ(judge(comparison_of(-0.03, 0.02), 0.01).direction, Direction::slower);
  EXPECT_EQ(judge(comparison_of(0.03, 0.04), 0.01).direction, Direction::inconclusive) << "the interval holds 0";
  EXPECT_EQ(judge(comparison_of(0.008, 0.002), 0.01).direction, Direction::same) << "below the minimum effect";
  EXPECT_EQ(judge(comparison_of(0.0, 0.03), 0.01).direction, Direction::inconclusive);
  EXPECT_EQ(judge(comparison_of(0.008, 0.002), 0.001).direction, Direction::faster)
      << "a smaller minimum effect was asked for";
}

TEST(judge, same_names_the_smallest_bound_that_holds) {
  const Verdict v = judge(comparison_of(-0.004, 0.006), 0.01);
  EXPECT_EQ(v.direction, Direction::same);
  EXPECT_NEAR(v.same_within, std::expm1(0.010), 1e-12);
  EXPECT_TRUE(std::isnan(judge(comparison_of(0.5, 0.01), 0.01).same_within));
}

TEST(plan, reachable_precision_and_restarts_agree) {
  EXPECT_NEAR(reachable_precision(6, 0.0045), 0.00671, 1e-4);  // 2.576 * sqrt(2/6) * 0.45%
  for (int r : {3, 6, 40}) EXPECT_EQ(restarts_for_precision(reachable_precision(r, 0.03), 0.03), r);
  EXPECT_GT(reachable_precision(2, 0.0045), 0.25) << "two restarts show no spread";
  EXPECT_FALSE(restarts_for_precision(1e-7, 0.03));
  EXPECT_FALSE(restarts_for_precision(0, 0.03));
}

// Restarts at these values, without noise within them.
Comparison at_values(const std::vector<double>& values, double sigma) {
  Differences d;
  for (double value : values) d.push_back(std::vector<double>(6, value));
  return compare(d, sigma);
}

TEST(plan, restarts_to_resolve_follow_from_the_scatter_that_was_seen) {
  const Comparison calm = at_values({.02, .022, .018, .02}, 0.015), wild = at_values({.12, -.06, .04, -.02}, 0.015);
  ASSERT_EQ(judge(calm, 0.01).direction, Direction::inconclusive);
  ASSERT_EQ(judge(wild, 0.01).direction, Direction::inconclusive);
  EXPECT_EQ(restarts_to_resolve(calm, 0.01), 8);  // 2.5758 sqrt(2/R) 1.5% <= 2%
  // t(99.5%, R - 1) 7.83% / sqrt(R) <= 2%, with a t of 2.62
  EXPECT_NEAR(restarts_to_resolve(wild, 0.01).value_or(0), 106, 2);
  EXPECT_EQ(restarts_to_resolve(at_values({.02}, 0.015), 0.01).value_or(0), 12) << "t with the assumed scatter";
  EXPECT_FALSE(restarts_to_resolve(compare(Differences{}, 0.015), 0.01));
}

TEST(plan, restarts_to_resolve_do_not_go_back_to_what_one_restart_would_claim) {
  const Comparison c = at_values({.1, .9, .3, .7}, 0.015);
  ASSERT_EQ(judge(c, 0.01).direction, Direction::inconclusive);
  EXPECT_GT(restarts_to_resolve(c, 0.01).value_or(0), 4);
}

TEST(plan, smallest_visible_follows_from_the_half_width_and_is_not_below_the_minimum_effect) {
  const auto visible = [](const std::vector<double>& values, double sigma) {
    return smallest_visible(at_values(values, sigma), 0.01);
  };
  EXPECT_GT(visible({0, .01, -.01}, 0.015), visible({0, .01, -.01, 0, .01, -.01}, 0.015));
  // t(99.5%, 2) = 9.9248 and t(95%, 2) = 2.9200 of a standard error of 5% / sqrt(3)
  EXPECT_NEAR(visible({0, .05, -.05}, 0.0045), std::expm1((9.9248 + 2.92) * .05 / std::sqrt(3.0)), 1e-3);
  EXPECT_GE(visible({0, 0, 0}, 0.0001), 0.01);
  EXPECT_TRUE(std::isinf(smallest_visible(compare(Differences{}, 0.015), 0.01)));
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
  double covered = 0, alarmed = 0, assumed_alarmed = 0;
};
Outcome run_many(int restarts, int pairs, double effect, double sigma, double assumed, std::uint64_t seed) {
  Random random(seed);
  Outcome out;
  constexpr int runs = 2000;
  for (int i = 0; i < runs; ++i) {
    Comparison c = compare(simulate(random, restarts, pairs, effect, sigma, 0.01), assumed);
    const auto alarms = [&] {
      const Direction direction = judge(c, 0.01).direction;
      return direction == Direction::faster || direction == Direction::slower;
    };
    out.covered += c.log_ratio.low <= effect && effect <= c.log_ratio.high;
    out.alarmed += alarms();
    c.log_ratio = c.assumed_only;
    out.assumed_alarmed += alarms();
  }
  return {out.covered / runs, out.alarmed / runs, out.assumed_alarmed / runs};
}

// Process effects as section 13 of the measurements found them, from static's to onednn's; 1.5% is assumed for all.
constexpr double seen_effects[] = {0.002, 0.008, 0.018, 0.055, 0.076, 0.09};

TEST(simulated_runs, the_interval_covers_the_truth_99_times_in_100_whatever_the_levels_process_effect) {
  for (int restarts : {1, 2, 3, 4, 8})
    for (double sigma : seen_effects)
      EXPECT_GE(run_many(restarts, 20, 0.013, sigma, 0.015, 17).covered, 0.9825) << restarts << " restarts, " << sigma;
}

TEST(simulated_runs, a_level_against_itself_raises_fewer_than_1_alarm_in_100_whatever_its_process_effect) {
  for (int restarts : {1, 2, 3, 4, 8})
    for (double sigma : seen_effects)
      EXPECT_LE(run_many(restarts, 20, 0, sigma, 0.015, 20).alarmed, 0.0173) << restarts << " restarts, " << sigma;
}

TEST(simulated_runs, the_assumption_alone_would_raise_an_alarm_every_second_time) {
  EXPECT_GT(run_many(6, 20, 0, 0.09, 0.015, 19).assumed_alarmed, 0.5) << "this is why restarts speak for themselves";
}

TEST(simulated_runs, an_effect_that_is_assumed_to_be_nothing_does_not_narrow_the_interval) {
  for (int restarts : {2, 4}) EXPECT_GE(run_many(restarts, 20, 0.013, 0.03, 0.0, 18).covered, 0.9825) << restarts;
}

TEST(simulated_runs, a_slowdown_of_2_percent_is_found_by_8_restarts_of_a_calm_level) {
  EXPECT_GE(run_many(8, 40, -0.02, 0.0045, 0.0045, 21).alarmed, 0.95);
}

TEST(simulated_runs, four_restarts_of_a_typical_level_find_8_percent) {
  EXPECT_GE(run_many(4, 20, 0.08, 0.008, 0.015, 23).alarmed, 0.95);
}

// A process that lies in one of two states for as long as it lives, as with and without huge pages.
TEST(simulated_runs, two_states_of_a_process_do_not_make_alarms_from_four_restarts_on) {
  Random random(24);
  for (int restarts : {2, 4, 8}) {
    int alarms = 0;
    for (int run = 0; run < 2000; ++run) {
      Differences d;
      for (int r = 0; r < restarts; ++r) {
        const double offset = 0.14 * (static_cast<double>(random.below(2)) - static_cast<double>(random.below(2)));
        d.emplace_back();
        for (int i = 0; i < 20; ++i) d.back().push_back(offset + 0.01 * normal(random));
      }
      const Direction direction = judge(compare(d, 0.015), 0.01).direction;
      alarms += direction == Direction::faster || direction == Direction::slower;
    }
    EXPECT_LE(alarms, 34) << restarts << " restarts";
  }
}

TEST(simulated_runs, the_smallest_visible_effect_is_found_19_times_in_20) {
  Random random(22);
  for (int restarts : {2, 3, 8})
    for (double sigma : {0.0045, 0.05}) {
      int found = 0;
      for (int run = 0; run < 2000; ++run) {
        auto d = simulate(random, restarts, 40, 0, sigma, 0.01);
        const double effect = std::log1p(smallest_visible(compare(d, 0.0045), 0.01));
        for (auto& restart : d)
          for (double& difference : restart) difference += effect;
        found += judge(compare(d, 0.0045), 0.01).direction == Direction::faster;
      }
      EXPECT_GE(found, 0.93 * 2000) << restarts << " restarts, " << sigma;
    }
}

}  // namespace
}  // namespace strata::stats
