// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "stats/disturbed.hpp"

namespace strata::stats {
namespace {

constexpr CoreBudget kOneThread{1, 2, 2}, kAllCores{2, 2, 2};

std::ptrdiff_t undisturbed(const std::vector<std::string>& why) {
  return std::count(why.begin(), why.end(), "");
}

TEST(disturbed, one_thread_that_waited_for_a_core_is_marked) {
  const std::vector<BlockTiming> blocks{{1e6, 10e6, 0.02e6}, {1.5e6, 15e6, 5e6}, {9e6, 90e6, 0}};
  const auto why = disturbed(blocks, kOneThread);
  EXPECT_EQ(why[0], "");
  EXPECT_EQ(why[1], "waited 33.3% of its time for a core");
  EXPECT_EQ(why[2], "") << "slow without waiting is the level's own";
}

TEST(disturbed, one_thread_that_did_not_wait_is_not_disturbed_by_what_others_do_on_other_cores) {
  const std::vector<BlockTiming> blocks(10, {1e6, 10e6, 0, 0.9});
  EXPECT_EQ(undisturbed(disturbed(blocks, kOneThread)), 10);
}

TEST(disturbed, more_threads_are_judged_by_their_own_median) {
  std::vector<BlockTiming> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back({1e6 + 1e3 * i, 10e6, 5e6});  // waiting is their own threads'
  blocks[4].median_ns = 1.6e6;
  const auto why = disturbed(blocks, kAllCores);
  EXPECT_EQ(why[4], "58% slower than this level's undisturbed blocks");
  EXPECT_EQ(undisturbed(why), 19);
}

TEST(disturbed, blocks_that_others_slowed_alike_are_all_marked) {
  // two hogs beside two threads on two cores: every block takes about 60 times as long as alone, none stands out
  std::vector<BlockTiming> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back({60e6 + 1e6 * (i % 7), 60e6, 30e6, 0.52});
  const auto why = disturbed(blocks, kAllCores);
  EXPECT_EQ(undisturbed(why), 0);
  EXPECT_EQ(why[0], "others had 52% of the processors, and 2 threads need them");
}

TEST(disturbed, a_load_that_begins_in_the_middle_marks_what_came_after_and_leaves_what_came_before) {
  std::vector<BlockTiming> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back({1e6 + 1e3 * (i % 5), 10e6, nan, i < 20 ? 0.01 : 0.48});
  const auto why = disturbed(blocks, kAllCores);
  EXPECT_EQ(std::count(why.begin(), why.begin() + 20, ""), 20);
  EXPECT_EQ(std::count(why.begin() + 20, why.end(), ""), 0);
}

TEST(disturbed, few_blocks_are_judged_by_the_undisturbed_ones_of_other_restarts) {
  std::vector<BlockTiming> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back({1e6 + 1e3 * (i % 5), 10e6, nan, 0.0, 0});
  for (int i = 0; i < 4; ++i) blocks.push_back({1.002e6, 10e6, nan, 0.0, 1});
  blocks.push_back({7e6, 70e6, nan, 0.0, 1});
  for (int i = 0; i < 20; ++i) blocks.push_back({7e6, 70e6, nan, 0.5, 1});  // crowded: no measure of anything
  const auto why = disturbed(blocks, kAllCores);
  EXPECT_NE(why[24], "");
  EXPECT_EQ(undisturbed(why), 24);
}

TEST(disturbed, a_level_that_varies_by_itself_is_not_marked) {
  std::vector<BlockTiming> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back({1e6 * (1 + 0.1 * (i % 5)), 10e6, nan});
  EXPECT_EQ(undisturbed(disturbed(blocks, kAllCores)), 30);
  blocks.resize(4);
  blocks[0].median_ns = 9e6;
  EXPECT_EQ(undisturbed(disturbed(blocks, kAllCores)), 4) << "too few blocks to judge by";
}

TEST(disturbed, unknown_waiting_falls_back_on_the_median) {
  std::vector<BlockTiming> blocks(10, {1e6, 10e6, nan});
  blocks[3].median_ns = 2e6;
  EXPECT_NE(disturbed(blocks, kOneThread)[3], "");
}

TEST(crowded, only_where_threads_and_others_need_more_cores_than_there_are) {
  EXPECT_FALSE(crowded(kAllCores, 0.09)) << "what every machine does besides";
  EXPECT_TRUE(crowded(kAllCores, 0.12));
  EXPECT_FALSE(crowded(kOneThread, 0.5)) << "the other core is free";
  EXPECT_TRUE(crowded(kOneThread, 0.97));
  EXPECT_FALSE(crowded({4, 16, 16}, 0.5));
  EXPECT_TRUE(crowded({16, 16, 16}, 0.5));
  EXPECT_TRUE(crowded({16, 16, 32}, 0.25)) << "a busy sibling slows the core's other thread";
}

TEST(crowded, never_where_nothing_is_known) {
  EXPECT_FALSE(crowded(kAllCores, nan));
  EXPECT_FALSE(crowded({2, 0, 0}, 1.0));
}

}  // namespace
}  // namespace strata::stats
