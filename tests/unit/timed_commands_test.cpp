// SPDX-License-Identifier: Apache-2.0
#include "analysis/timed_commands.hpp"

#include <gtest/gtest.h>

#include "report/timed_commands.hpp"

namespace strata::analysis {
namespace {

// Runs of two commands, the second twice as fast, with a little of noise in both.
TimedCommands two(int runs) {
  TimedCommands timed;
  timed.commands.resize(2);
  timed.commands[0].name = "old";
  timed.commands[1].name = "new";
  timed.cores = timed.processors = 2;
  for (int run = 0; run < runs; ++run) {
    const double noise = 1 + 0.01 * (run % 3), other = 1 + 0.01 * (run % 2);
    timed.blocks.push_back({{2e6 * noise, 1e6 * other}});
    timed.commands[0].wall_ns.push_back(2e6 * noise);
    timed.commands[1].wall_ns.push_back(1e6 * other);
  }
  return timed;
}

TEST(TimedCommands, one_that_takes_half_the_time_is_faster_with_an_interval_around_two) {
  const auto speedup = speedup_of(two(10), 1);
  ASSERT_TRUE(speedup && speedup->low && speedup->high);
  EXPECT_NEAR(*speedup->value, 2, 0.02);
  EXPECT_GT(*speedup->low, 1.8);
  EXPECT_LT(*speedup->high, 2.2);
  EXPECT_EQ(speedup->verdict, RatioVerdict::faster);
  EXPECT_EQ(speedup_of(two(10), 0)->verdict, RatioVerdict::reference);
}

TEST(TimedCommands, two_runs_claim_nothing_below_what_processes_differ_by) {
  auto timed = two(2);
  for (auto& restart : timed.blocks) restart[0][1] = restart[0][0] / 1.2;
  EXPECT_EQ(speedup_of(timed, 1)->verdict, RatioVerdict::inconclusive);
}

TEST(TimedCommands, no_verdict_is_given_where_others_took_cores_that_the_busiest_needs) {
  auto timed = two(10);
  timed.others = 0.4;
  EXPECT_TRUE(is_reliable(timed));  // one core of two is free
  for (const auto& wall : timed.commands[1].wall_ns) timed.commands[1].processor_ns.push_back(2 * wall);
  EXPECT_FALSE(is_reliable(timed));
  EXPECT_EQ(speedup_of(timed, 1)->verdict, RatioVerdict::inconclusive);
  const auto page = report::commands_document(timed);
  EXPECT_NE(page.summary.find("inconclusive"), std::string::npos) << page.summary;
  EXPECT_NE(std::get<document::Text>(page.sections[0].items[0]).paragraph.find("40%"), std::string::npos);
}

TEST(TimedCommands, an_answer_is_a_sentence_for_each_command_and_the_page_says_where_and_when) {
  auto timed = two(10);
  timed.commands.push_back(timed.commands[1]);
  timed.commands[2].name = "other";
  for (auto& restart : timed.blocks) restart[0].push_back(restart[0][0] * (restart[0][1] > 1e6 ? 0.6 : 1.6));
  timed.cpu = "a processor";
  timed.began_at = "2026-11-21T06:15:00Z";
  const auto page = report::commands_document(timed);
  EXPECT_TRUE(page.summary.starts_with("new is ")) << page.summary;
  EXPECT_NE(page.summary.find("). It is inconclusive whether other is faster than old: "), std::string::npos)
      << page.summary;
  EXPECT_TRUE(page.summary.ends_with(").")) << page.summary;
  ASSERT_EQ(page.facts.size(), 2U);
  EXPECT_EQ(page.facts[0].value, "a processor, 2 cores");
  EXPECT_EQ(page.facts[1].value, "2026-11-21T06:15:00Z");
}

TEST(TimedCommands, a_page_of_a_first_command_that_failed_says_so_and_has_no_speedup) {
  auto timed = two(3);
  timed.commands[0].state = State::failed;
  timed.commands[0].reason = "exited with code 3";
  EXPECT_FALSE(speedup_of(timed, 1));
  const auto page = report::commands_document(timed);
  EXPECT_NE(page.summary.find("old, the first, has no number: exited with code 3"), std::string::npos);
}

}  // namespace
}  // namespace strata::analysis
