// SPDX-License-Identifier: Apache-2.0
// Joint estimates, ledger differences, break-even and the machine's process effect.
#include <gtest/gtest.h>

#include <cmath>

#include "stats/compare.hpp"
#include "stats/schedule.hpp"
#include "unit/normal.hpp"

namespace strata::stats {
namespace {

// Rounds whose machine drifts by up to a fifth, all levels alike.
Blocks drifting(const std::vector<double>& level_ns, int restarts, int rounds, double noise, Random& random) {
  Blocks blocks(static_cast<std::size_t>(restarts));
  for (auto& restart : blocks)
    for (int i = 0; i < rounds; ++i) {
      const double drift = 1 + 0.1 * std::sin(i * 0.7);
      std::vector<double> row;
      for (double ns : level_ns) row.push_back(ns * drift * std::exp(noise * normal(random)));
      restart.push_back(row);
    }
  return blocks;
}

TEST(joint, finds_the_levels_under_drift_and_noise) {
  Random random(1);
  const auto joint = joint_estimates(drifting({40e6, 30e6, 20e6}, 3, 40, 0.01, random));
  ASSERT_EQ(joint.milliseconds.size(), 3u);
  EXPECT_TRUE(joint.connected);
  EXPECT_NEAR(joint.milliseconds[0] / joint.milliseconds[1], 4.0 / 3, 0.005);
  EXPECT_NEAR(joint.milliseconds[1] / joint.milliseconds[2], 1.5, 0.006);
  EXPECT_NEAR(joint.milliseconds[0], 40, 1);
}

TEST(joint, one_bad_block_moves_nothing) {
  Random random(2);
  Blocks blocks = drifting({40e6, 30e6, 20e6}, 2, 20, 0.005, random);
  const auto before = joint_estimates(blocks);
  blocks[0][7][1] *= 50;
  const auto after = joint_estimates(blocks);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(after.milliseconds[i] / before.milliseconds[i], 1, 0.003) << i;
}

TEST(joint, a_level_that_missed_the_slow_rounds_is_not_flattered) {
  Blocks blocks{{}};
  for (int i = 0; i < 20; ++i) {
    const double machine = i < 10 ? 1.0 : 1.5;  // the machine becomes busy half way
    blocks[0].push_back({10e6 * machine, i < 10 ? 10e6 * machine : nan});
  }
  const auto joint = joint_estimates(blocks);
  EXPECT_NEAR(joint.milliseconds[0] / joint.milliseconds[1], 1, 1e-6);
}

TEST(joint, a_level_that_missed_a_slow_restart_is_not_flattered) {
  Blocks blocks;
  for (double machine : {1.0, 1.5, 1.0}) {
    blocks.push_back({});
    for (int i = 0; i < 10; ++i) blocks.back().push_back({10e6 * machine, machine > 1 ? nan : 5e6 * machine});
  }
  const auto joint = joint_estimates(blocks);
  EXPECT_NEAR(joint.milliseconds[0] / joint.milliseconds[1], 2, 1e-6);
  EXPECT_TRUE(joint.connected);
}

TEST(joint, levels_that_share_no_restart_still_get_numbers_and_it_is_said) {
  const Blocks blocks{{{10e6, nan}, {10e6, nan}}, {{nan, 20e6}, {nan, 20e6}}};
  const auto joint = joint_estimates(blocks);
  EXPECT_FALSE(joint.connected);
  EXPECT_NEAR(joint.milliseconds[0], 10, 1e-9);
  EXPECT_NEAR(joint.milliseconds[1], 20, 1e-9);
}

TEST(joint, a_level_without_a_block_has_no_number_and_disturbs_no_other) {
  const auto joint = joint_estimates({{{10e6, nan, 30e6}, {10e6, nan, 30e6}}});
  EXPECT_NEAR(joint.milliseconds[0], 10, 1e-9);
  EXPECT_TRUE(std::isnan(joint.milliseconds[1]));
  EXPECT_NEAR(joint.milliseconds[2], 30, 1e-9);
  EXPECT_TRUE(joint.connected);
  EXPECT_TRUE(joint_estimates({}).milliseconds.empty());
}

TEST(ledger, steps_add_up_along_any_path) {
  Random random(4);
  const Blocks blocks = drifting({40e6, 33e6, 21e6}, 2, 15, 0.03, random);
  const auto ms = joint_estimates(blocks).milliseconds;
  const auto edge = [&](std::size_t from, std::size_t to) {
    return difference_ms(ms[from], ms[to], compare(log_differences(blocks, from, to), 0.015)).value;
  };
  EXPECT_NEAR(edge(0, 1) + edge(1, 2), edge(0, 2), 1e-9);
}

TEST(ledger, difference_lies_within_its_interval_and_below_zero_is_faster) {
  Comparison c;
  c.log_ratio = {std::log(2.0), std::log(2.0) - 0.1, std::log(2.0) + 0.2};
  const Interval d = difference_ms(40, 20, c);
  EXPECT_NEAR(d.value, -20, 1e-9);
  EXPECT_NEAR(d.low, 40 * (0.5 * std::exp(-0.2) - 1), 1e-9);
  EXPECT_NEAR(d.high, 40 * (0.5 * std::exp(0.1) - 1), 1e-9);
}

TEST(break_even, divides_the_slower_start_by_the_gain) {
  const BreakEven b = break_even({1000, 800, 1200}, {-2, -4, -1}, Direction::faster);
  EXPECT_FALSE(b.never);
  EXPECT_EQ(b.iterations.value, 500);
  EXPECT_EQ(b.iterations.low, 200);
  EXPECT_EQ(b.iterations.high, 1200);
}

TEST(break_even, is_never_for_a_level_that_is_resolved_not_to_be_faster) {
  for (Direction d : {Direction::slower, Direction::same}) {
    EXPECT_TRUE(break_even({1000, 800, 1200}, {-2, -4, -1}, d).never);
    EXPECT_FALSE(break_even({1000, 800, 1200}, {-2, -4, -1}, d).inconclusive);
  }
}

TEST(break_even, is_inconclusive_while_it_is_open_whether_the_level_is_faster) {
  const BreakEven b = break_even({1000, 800, 1200}, {-2, -4, 1}, Direction::inconclusive);
  EXPECT_TRUE(b.inconclusive);
  EXPECT_FALSE(b.never);
}

TEST(break_even, is_nothing_for_a_level_that_starts_no_slower_whatever_its_verdict) {
  for (Direction d : {Direction::faster, Direction::slower, Direction::same, Direction::inconclusive}) {
    const BreakEven b = break_even({-2400, -2500, -2300}, {-2, -4, 1}, d);
    EXPECT_FALSE(b.never || b.inconclusive);
    EXPECT_EQ(b.iterations.value, 0);
    EXPECT_EQ(b.iterations.high, 0);
  }
}

// A run on a busy machine printed 389 us for a level whose fastest of 564 iterations took 397, and 1.65 ms for one
// whose median was 0.199: the model of all blocks had next to no undisturbed block of theirs.
TEST(shown_time, an_estimate_outside_of_its_own_samples_becomes_their_median) {
  const std::vector<double> samples{397, 410, 423, 450, 900};
  for (double outside : {389.0, 901.0, nan, 1e9}) {
    const ShownTime s = shown_time(outside, samples, 0.1);
    EXPECT_TRUE(s.is_median) << outside;
    EXPECT_EQ(s.milliseconds, 423) << outside;
  }
  EXPECT_FALSE(shown_time(405, samples, 0.1).is_median);
  EXPECT_EQ(shown_time(405, samples, 0.1).milliseconds, 405);
}

TEST(shown_time, most_blocks_disturbed_leave_the_median_of_all_samples) {
  const std::vector<double> samples{0.19, 0.199, 0.21, 9.0};
  EXPECT_TRUE(shown_time(1.65, samples, 0.9).is_median);
  EXPECT_NEAR(shown_time(1.65, samples, 0.9).milliseconds, 0.2045, 1e-12);
  EXPECT_FALSE(shown_time(1.65, samples, 0.5).is_median);
}

TEST(shown_time, equal_samples_are_not_left_by_rounding_and_none_leave_the_estimate) {
  const std::vector<double> samples(10, 0.1);
  EXPECT_FALSE(shown_time(0.1 * (1 + 1e-13), samples, 0).is_median);
  EXPECT_EQ(shown_time(0.1 * (1 + 1e-13), samples, 0).milliseconds, 0.1);
  EXPECT_TRUE(std::isnan(shown_time(nan, {}, 0).milliseconds));
}

TEST(break_even, is_at_once_when_the_start_is_no_slower_and_open_when_the_gain_may_be_none) {
  EXPECT_EQ(break_even({-50, -80, -10}, {-2, -4, -1}, Direction::faster).iterations.high, 0);
  EXPECT_TRUE(std::isinf(break_even({50, 40, 60}, {-2, -4, 0.5}, Direction::faster).iterations.high));
  EXPECT_EQ(break_even({50, -5, 60}, {-2, -4, -1}, Direction::faster).iterations.low, 0);
}

TEST(range, of_starts_is_median_and_extremes) {
  const Interval r = range_of(std::vector<double>{3, 1, 2});
  EXPECT_EQ(r.value, 2);
  EXPECT_EQ(r.low, 1);
  EXPECT_EQ(r.high, 3);
  EXPECT_TRUE(std::isnan(range_of({}).value));
}

TEST(process_effect, is_found_beneath_noise_and_drift) {
  Random random(6);
  Blocks sessions;
  for (int s = 0; s < 40; ++s) {
    std::vector<double> instances;
    for (int i = 0; i < 8; ++i) instances.push_back(20e6 * std::exp(0.004 * normal(random)));
    sessions.push_back(drifting(instances, 1, 60, 0.01, random)[0]);
  }
  const ProcessEffect e = estimate_process_effect(sessions);
  EXPECT_EQ(e.sessions, 40);
  EXPECT_EQ(e.instances, 320);
  EXPECT_NEAR(e.sigma, 0.004, 0.0004);
  EXPECT_LT(e.low, e.sigma);
  EXPECT_GT(e.high, e.sigma);
}

TEST(process_effect, interval_covers_the_truth_19_times_in_20) {
  Random random(7);
  int covered = 0;
  for (int run = 0; run < 80; ++run) {
    Blocks sessions;
    for (int s = 0; s < 2; ++s) {
      std::vector<double> instances;
      for (int i = 0; i < 8; ++i) instances.push_back(20e6 * std::exp(0.004 * normal(random)));
      sessions.push_back(drifting(instances, 1, 40, 0.006, random)[0]);
    }
    const ProcessEffect e = estimate_process_effect(sessions);
    covered += e.low <= 0.004 && 0.004 <= e.high;
  }
  EXPECT_GE(covered, 72);
}

TEST(process_effect, of_equal_instances_is_about_none) {
  Random random(8);
  const ProcessEffect e = estimate_process_effect({drifting(std::vector<double>(8, 20e6), 1, 100, 0.01, random)[0]});
  EXPECT_EQ(e.low, 0);
  EXPECT_LT(e.sigma, 0.001);
}

TEST(process_effect, needs_two_instances_and_five_rounds) {
  EXPECT_TRUE(std::isnan(estimate_process_effect({{{1e6}, {1e6}, {1e6}, {1e6}, {1e6}, {1e6}}}).sigma));
  EXPECT_TRUE(std::isnan(estimate_process_effect({{{1e6, 1e6}, {1e6, 1e6}}}).sigma));
}

}  // namespace
}  // namespace strata::stats
