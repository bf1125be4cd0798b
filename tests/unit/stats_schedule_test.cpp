// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "stats/schedule.hpp"

namespace strata::stats {
namespace {

using ::testing::ElementsAre;

std::map<std::pair<int, int>, int> followers(const std::vector<std::vector<int>>& rows) {
  std::map<std::pair<int, int>, int> count;
  for (const auto& row : rows)
    for (std::size_t i = 1; i < row.size(); ++i) ++count[{row[i - 1], row[i]}];
  return count;
}

TEST(williams, every_level_follows_every_other_equally_often) {
  for (int n = 2; n <= 9; ++n) {
    const auto rows = williams(n);
    EXPECT_EQ(rows.size(), static_cast<std::size_t>(n % 2 ? 2 * n : n)) << n;
    const auto count = followers(rows);
    EXPECT_EQ(count.size(), static_cast<std::size_t>(n * (n - 1))) << n;
    for (const auto& [pair, times] : count)
      EXPECT_EQ(times, n % 2 ? 2 : 1) << n << ": " << pair.first << " then " << pair.second;
  }
}

TEST(williams, every_level_takes_every_position_equally_often) {
  for (int n = 1; n <= 9; ++n) {
    const auto rows = williams(n);
    for (int position = 0; position < n; ++position) {
      std::map<int, int> count;
      for (const auto& row : rows) ++count[row[static_cast<std::size_t>(position)]];
      ASSERT_EQ(count.size(), static_cast<std::size_t>(n));
      for (const auto& [level, times] : count) EXPECT_EQ(times, static_cast<int>(rows.size()) / n);
    }
  }
}

TEST(random, draws_the_published_sequence_of_splitmix64) {
  Random random(1234567);  // reference values of the algorithm's authors for this seed
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(random, below_is_even) {
  Random random(5);
  std::vector<int> count(6);
  for (int i = 0; i < 60000; ++i) ++count[random.below(6)];
  for (int times : count) EXPECT_NEAR(times, 10000, 400);
}

TEST(schedule, is_the_same_for_the_same_seed_and_differs_for_another) {
  Schedule a(5, 7), b(5, 7), c(5, 8);
  bool differs = false;
  for (int i = 0; i < 40; ++i) {
    const auto order = a.next();
    EXPECT_EQ(order, b.next());
    differs |= order != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(schedule, has_not_changed_since_runs_were_stored_with_their_seed) {
  Schedule schedule(4, 1);
  const std::vector<std::vector<int>> now{schedule.next(), schedule.next(), schedule.next()};
  EXPECT_EQ(now, (std::vector<std::vector<int>>{{0, 3, 2, 1}, {3, 1, 0, 2}, {1, 2, 3, 0}}));
}

TEST(schedule, visits_every_level_once_a_round) {
  for (int n = 1; n <= 8; ++n) {
    Schedule schedule(n, 3);
    for (int i = 0; i < 50; ++i) {
      const auto order = schedule.next();
      EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), static_cast<std::size_t>(n));
      EXPECT_EQ(order.size(), static_cast<std::size_t>(n));
    }
  }
}

TEST(schedule, seldom_lets_a_level_follow_itself) {
  for (int n : {3, 4, 6, 7}) {
    Schedule schedule(n, 11);
    int last = -1, itself = 0, rounds = 600;
    for (int i = 0; i < rounds; ++i) {
      const auto order = schedule.next();
      itself += order.front() == last;
      last = order.back();
    }
    EXPECT_LT(itself, rounds / 15) << n;
  }
}

TEST(schedule, balances_followers_within_rounds_over_whole_squares) {
  Schedule schedule(4, 2);
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < 40; ++i) rows.push_back(schedule.next());
  for (const auto& [pair, times] : followers(rows)) EXPECT_EQ(times, 10) << pair.first << " then " << pair.second;
}

TEST(schedule, two_levels_alternate_strictly_and_the_first_side_is_drawn_anew) {
  Schedule schedule(2, 4, 10);
  int switches = 0, last = -1;
  std::set<int> first_sides;
  for (int i = 0; i < 400; ++i) {
    const auto order = schedule.next();
    first_sides.insert(order.front());
    if (last == order.front()) {
      ++switches;
      EXPECT_EQ(i % 10, 0) << "a side may only change where it is drawn";
    }
    last = order.back();
  }
  EXPECT_EQ(first_sides.size(), 2u);
  EXPECT_GT(switches, 5);
  EXPECT_LT(switches, 35);
}

TEST(schedule, of_no_level_is_empty_and_of_one_is_that_level) {
  EXPECT_TRUE(Schedule(0, 1).next().empty());
  EXPECT_THAT(Schedule(1, 1).next(), ElementsAre(0));
}

}  // namespace
}  // namespace strata::stats
