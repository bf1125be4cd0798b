// SPDX-License-Identifier: Apache-2.0
// Who may be the fastest of several: what is claimed, and how often that is wrong in simulated runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stats/best.hpp"
#include "stats/schedule.hpp"
#include "unit/normal.hpp"

namespace strata::stats {
namespace {

// Levels by their log times, each pair with an interval of this half width.
CompareTwo pairs_of(const std::vector<double>& log_times, double half_width, Basis basis = Basis::assumed) {
  return [=](std::size_t reference, std::size_t level) {
    Comparison c;
    const double value = log_times[reference] - log_times[level];
    c.log_ratio = {value, value - half_width, value + half_width};
    c.half_width = {.width = half_width, .basis = basis};
    c.per_restart.assign(6, value);
    return c;
  };
}

TEST(Best, is_one_level_where_all_others_are_excluded) {
  const auto best = not_excluded_as_best(3, pairs_of({std::log(2.0), 0, std::log(1.5)}, 0.1), 0.01);
  EXPECT_EQ(best.members, std::vector<std::size_t>{1});
}

TEST(Best, are_several_where_their_intervals_reach_each_other_and_how_far_they_may_part_is_said) {
  const auto best = not_excluded_as_best(3, pairs_of({0, 0.02, 1}, 0.05), 0.01);
  EXPECT_EQ(best.members, (std::vector<std::size_t>{0, 1}));
  EXPECT_NEAR(best.tie_within, std::expm1(0.07), 1e-12);
}

TEST(Best, no_one_is_excluded_by_less_than_the_least_effect_or_by_nothing_known) {
  EXPECT_EQ(not_excluded_as_best(2, pairs_of({0.005, 0}, 0.001), 0.01).members.size(), 2U);
  EXPECT_EQ(not_excluded_as_best(2, pairs_of({5, 0}, std::numeric_limits<double>::infinity()), 0.01).members.size(),
            2U);
  EXPECT_EQ(not_excluded_as_best(1, pairs_of({0}, 0.1), 0.01).members.size(), 1U);
  EXPECT_TRUE(not_excluded_as_best(0, pairs_of({}, 0.1), 0.01).members.empty());
}

TEST(Best, the_more_levels_there_are_the_more_it_takes_to_exclude_one) {
  std::vector<double> many(10, 1.0);
  many[0] = 0.105;
  many[1] = 0;
  EXPECT_EQ(not_excluded_as_best(2, pairs_of({0.105, 0}, 0.1), 0.01).members.size(), 1U);
  EXPECT_EQ(not_excluded_as_best(10, pairs_of(many, 0.1), 0.01).members.size(), 2U);
  EXPECT_EQ(not_excluded_as_best(10, pairs_of(many, 0.1, Basis::restarts), 0.01).members.size(), 2U);
}

// Five levels, of which one is faster by nothing or by a little; processes part by 2%, and just that is assumed.
TEST(Best, the_truly_fastest_of_five_is_excluded_in_no_more_than_one_run_of_a_hundred) {
  constexpr int kRuns = 600, kRestarts = 4;
  Random random(11);
  int excluded = 0, coloured = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<std::vector<double>>> log_times(kRestarts);
    for (auto& restart : log_times)
      for (int level = 0; level < 5; ++level) {
        const double offset = (level == 0 && run % 2 == 0 ? -0.002 : 0) + 0.02 * normal(random);
        std::vector<double> rounds;
        for (int round = 0; round < 8; ++round) rounds.push_back(offset + 0.003 * normal(random));
        restart.push_back(rounds);
      }
    const auto best = not_excluded_as_best(
        5,
        [&](std::size_t reference, std::size_t level) {
          std::vector<std::vector<double>> differences;
          for (const auto& restart : log_times) {
            differences.emplace_back();
            for (int round = 0; round < 8; ++round)
              differences.back().push_back(restart[reference][static_cast<std::size_t>(round)] -
                                           restart[level][static_cast<std::size_t>(round)]);
          }
          return compare(differences, 0.02);
        },
        0.01);
    excluded += std::find(best.members.begin(), best.members.end(), 0U) == best.members.end();
    coloured += best.members.size() == 1;
  }
  EXPECT_LE(excluded, kRuns / 100);
  EXPECT_LE(coloured, kRuns / 50);
}

}  // namespace
}  // namespace strata::stats
