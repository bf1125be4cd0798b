// SPDX-License-Identifier: Apache-2.0
// MLPerf's check of reference convergence points, and what a report says of it in both directions; the life cycle of a
// level.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/training_sections.hpp"
#include "stats/convergence.hpp"

namespace strata::report {
namespace {

using stats::convergence;
using stats::Convergence;
using ::testing::HasSubstr;

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(convergence_points, leave_out_the_extremes_of_the_mean_and_not_of_the_deviation) {
  const auto found = convergence({10, 30, 20, 21, 19});
  EXPECT_EQ(found.runs_used(), 3);
  EXPECT_DOUBLE_EQ(found.mean, 20);
  EXPECT_NEAR(found.deviation, std::sqrt((100 + 100 + 0 + 1 + 1) / 5.0), 1e-12);
}

TEST(convergence_points, drop_one_run_that_never_came_to_the_target_and_no_two) {
  const auto one = convergence({10, 20, kNever, 30, 20});
  EXPECT_TRUE(one.converges());
  EXPECT_NEAR(one.mean, 70 / 3.0, 1e-12);
  EXPECT_FALSE(convergence({10, kNever, kNever, 30, 20}).converges());
}

// The example of MLPerf's rules: 10 runs of the reference with a mean of 15.75, 5 of the submission. With the deviation
// of their text (0.43) it prints 15.21; with that of all runs, which the code takes, it is 14.78.
TEST(convergence_points, allow_as_few_epochs_as_mlperfs_code_and_text_do) {
  EXPECT_NEAR(stats::fewest_epochs(Convergence{.runs = 10, .mean = 15.75, .deviation = 0.43}, 3), 15.21, 0.01);
  EXPECT_NEAR(stats::fewest_epochs(Convergence{.runs = 10, .mean = 15.75, .deviation = 0.78}, 3), 14.78, 0.01);
  EXPECT_EQ(stats::fewest_epochs(Convergence{.runs = 10, .mean = 15.75}, 3), 15.75) << "without scatter no slack";
  EXPECT_TRUE(std::isnan(stats::fewest_epochs(Convergence{.runs = 3, .mean = 9, .deviation = 1}, 1)));
  EXPECT_TRUE(std::isnan(stats::fewest_epochs(convergence({9, 9, 8, 9, kNever}), 3)));
}

// Accuracy steps to 0.96 at these epochs of 25, and stays at 0.5 before; 0: never.
analysis::Learning learning(const std::vector<int>& reached) {
  std::vector<store::Series> series;
  int repeat = 0;
  for (const int epoch : reached) {
    store::Series one{"test_accuracy", "1", "epoch", {}, {}, repeat++};
    for (int i = 1; i <= 25; ++i) {
      one.positions.push_back(i);
      one.values.push_back(epoch > 0 && i >= epoch ? 0.96 : 0.5);
    }
    series.push_back(std::move(one));
  }
  return analysis::Learning(series);
}

std::string verdict_on(const std::vector<int>& level) {
  const auto own = learning({12, 13, 14, 13, 12}), other = learning(level);
  const auto section = mlperf_rule({"eager", &own}, {{"level", &other}}, 0.95);
  const auto& table = std::get<document::Table>(section.items.at(0));
  EXPECT_THAT(table.note, HasSubstr("MLPerf training 5.0"));
  return std::get<std::string>(table.rows.at(0).at(5));
}

TEST(mlperfs_rule, looks_in_both_directions) {
  EXPECT_EQ(verdict_on({13, 12, 13, 14, 12}), "passes in both directions");
  EXPECT_THAT(verdict_on({5, 6, 5, 6, 5}), HasSubstr("too fast"));
  EXPECT_THAT(verdict_on({22, 21, 22, 20, 21}), HasSubstr("too slow"));
  EXPECT_THAT(verdict_on({22, 21, 0, 0, 21}), HasSubstr("does not converge: 2 of 5"));
  EXPECT_THAT(verdict_on({13, 12, 0, 14, 12}), HasSubstr("not judged the other way"));
  EXPECT_THAT(verdict_on({13, 12, 13}), HasSubstr("not judged: 3 of at least 5"));
}

TEST(mlperfs_rule, has_no_power_where_every_repeat_is_at_the_target_at_the_first_evaluation) {
  const auto own = learning({1, 1, 1, 1, 1}), slower = learning({3, 2, 3, 4, 3});
  const auto section = mlperf_rule({"eager", &own}, {{"same", &own}, {"slower", &slower}}, 0.95);
  EXPECT_THAT(std::get<document::Text>(section.items.at(0)).paragraph, HasSubstr("no power here"));
  const auto& table = std::get<document::Table>(section.items.at(1));
  EXPECT_THAT(std::get<std::string>(table.rows.at(0).at(5)), HasSubstr("no power"));
  EXPECT_THAT(std::get<std::string>(table.rows.at(1).at(5)), HasSubstr("too slow"));
}

TEST(mlperfs_rule, says_that_nothing_can_be_judged_by_a_reference_that_does_not_converge) {
  const auto own = learning({12, 13, 0, 13, 12}), other = learning({12, 13, 14, 13, 12});
  const auto section = mlperf_rule({"eager", &own}, {{"level", &other}}, 0.95);
  EXPECT_THAT(std::get<document::Text>(section.items.at(0)).paragraph, HasSubstr("4 of 5 repeats of eager"));
}

TEST(a_life_cycle, shows_what_is_known_and_how_far_the_reference_is_behind) {
  store::Case one;
  one.reference_level = "eager";
  one.rows.resize(2);
  one.rows[0].level = "eager";
  one.rows[1].level = "static";
  one.rows[1].info.lines = store::Lines{.total = 120};
  one.rows[1].info.cold_start = store::ColdStart{.total_ms = 4000, .prepare_ms = 3000};
  std::vector<TrainedLevel> levels;
  for (const auto& [epoch, score] : {std::pair(2.2, 0.105), std::pair(1.0, 0.1)}) {
    std::vector<store::Series> series{{"epoch_seconds", "s", "epoch", {1}, {epoch}, 0},
                                      {"score_seconds", "s", "epoch", {1}, {score}, 0}};
    levels.push_back({&one.rows[levels.size()], analysis::Learning(series), State::measured, "", series});
  }
  const auto section = life_cycle(levels, one);
  const auto& cycle = std::get<document::Table>(section.items.at(0));
  EXPECT_EQ(std::get<document::Number>(cycle.rows[1][1]).value, 120);
  EXPECT_EQ(std::get<document::Number>(cycle.rows[1][2]).value, 3);
  EXPECT_TRUE(std::holds_alternative<document::Absent>(cycle.rows[0][2])) << "eager prepares nothing";
  const auto& behind = std::get<document::Table>(section.items.at(1));
  ASSERT_EQ(behind.rows.size(), 2u);  // an epoch and a test: no start was seen
  EXPECT_EQ(std::get<std::string>(behind.rows[0][5]), "more than 100% behind");
  EXPECT_EQ(std::get<std::string>(behind.rows[1][5]), "within 10%");
}

}  // namespace
}  // namespace strata::report
