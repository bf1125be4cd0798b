// SPDX-License-Identifier: Apache-2.0
// From stored blocks to the result: times within their samples, restarts that count, ratios across modes.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "analysis/result_json.hpp"
#include "report/access.hpp"
#include "report/first_screen.hpp"
#include "report/result.hpp"

namespace strata::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Blocks of five equal iterations, one for each [restart][round]; a time below 0 is that of a disturbed block.
store::Row row_of_times(const std::string& level, const std::vector<std::vector<double>>& ms) {
  store::Row out;
  out.level = level;
  out.state = State::measured;
  out.proof = store::Proof{.verdict = "equal"};
  for (std::size_t restart = 0; restart < ms.size(); ++restart)
    for (std::size_t round = 0; round < ms[restart].size(); ++round) {
      store::Block block;
      block.restart = static_cast<int>(restart);
      block.round = static_cast<int>(round);
      block.wall_ns.assign(5, std::llround(std::abs(ms[restart][round]) * 1e6));
      block.latency_ns = block.wall_ns;
      block.runq_ns = ms[restart][round] < 0 ? block.wall_ns[0] : 0;
      out.blocks.push_back(std::move(block));
    }
  return out;
}

store::Case case_of(std::vector<store::Row> rows, core::Precision precision = core::Precision::fp32) {
  store::Case one;
  one.question = {.model = "net", .inputs = {{.name = "x", .shape = {1, 1}}}, .precision = precision};
  one.id = one.question.id();
  one.bundle = {{"model", {{"name", "net"}}}};
  one.trust.process_sigma = 0.015;
  one.reference_level = "eager";
  one.rows = std::move(rows);
  return one;
}

analysis::RunResult result_of_cases(std::vector<store::Case> cases) {
  store::Run run;
  run.run_id = "r";
  run.cases = std::move(cases);
  return result_of(run);
}

std::vector<std::vector<double>> steady(double ms, int restarts = 4, double by_restart = 0.001) {
  std::vector<std::vector<double>> out;
  for (int r = 0; r < restarts; ++r) out.emplace_back(12, ms * (1 + by_restart * (r % 2 ? 1 : -1)));
  return out;
}

// The rounds that a level shared with the others were slow ones: the model puts it below all that it ever took.
TEST(result_of, a_time_never_lies_outside_of_its_own_samples) {
  auto slow_machine = steady(10, 1), level = slow_machine;
  for (std::size_t i = 0; i < 12; ++i) {
    slow_machine[0][i] = i < 4 ? 20 : 10;
    level[0][i] = i < 4 ? 4 : -8;  // undisturbed in the slow rounds alone
  }
  const auto result = result_of_cases({case_of({row_of_times("eager", slow_machine), row_of_times("static", level)})});
  const auto run = to_json(result);
  const auto& ms = run["cases"][0]["rows"][1]["end_to_end_ms"];
  EXPECT_GE(ms["estimate"].get<double>(), ms["min"].get<double>());
  EXPECT_TRUE(ms["is_median"].get<bool>());
  EXPECT_EQ(ms["estimate"], ms["median"]);
  const auto& latency = run["cases"][0]["rows"][1]["latency_ms"];
  EXPECT_GE(latency["estimate"].get<double>(), latency["min"].get<double>());
  const auto screen = first_screen(result, result.cases[0], glyphs(false));
  EXPECT_EQ(screen.levels[1].time.substr(screen.levels[1].time.size() - 2), " *");
  EXPECT_THAT(screen.trust, HasSubstr("* median of all samples, since most blocks were disturbed"));
  EXPECT_FALSE(run["cases"][0]["rows"][0]["end_to_end_ms"]["is_median"].get<bool>());
}

TEST(result_of, a_level_whose_every_block_was_disturbed_still_has_the_median_of_its_samples) {
  const auto run =
      to_json(result_of_cases({case_of({row_of_times("eager", steady(10)), row_of_times("static", steady(-5))})}));
  const auto& ms = run["cases"][0]["rows"][1]["end_to_end_ms"];
  EXPECT_NEAR(ms["estimate"].get<double>(), 5, 0.1);
  EXPECT_TRUE(ms["is_median"].get<bool>());
  EXPECT_TRUE(run["cases"][0]["rows"][1]["ratio"]["value"].is_null());
}

TEST(result_of, a_restart_without_undisturbed_rounds_is_counted_as_begun_and_not_as_compared) {
  auto level = steady(5, 2);
  std::fill(level[1].begin(), level[1].end(), -5.0);
  const auto result = result_of_cases({case_of({row_of_times("eager", steady(10, 2)), row_of_times("static", level)})});
  const auto run = to_json(result);
  const auto& trust = run["cases"][0]["trust"];
  EXPECT_EQ(trust["restarts"], 2);
  EXPECT_EQ(trust["restarts_compared"], 1);
  const auto words = first_screen(result, result.cases[0], glyphs(false)).trust;
  EXPECT_THAT(words, HasSubstr("2 restarts, 1 with undisturbed rounds"));
  EXPECT_THAT(words, HasSubstr("10% between processes is assumed"));
  EXPECT_EQ(run["cases"][0]["rows"][1]["ratio"]["rests_on"], "most");
}

TEST(result_of, enough_restarts_say_only_their_number) {
  const auto result =
      result_of_cases({case_of({row_of_times("eager", steady(10)), row_of_times("static", steady(5))})});
  const auto run = to_json(result);
  const auto words = first_screen(result, result.cases[0], glyphs(false)).trust;
  EXPECT_THAT(words, HasSubstr("4 restarts"));
  EXPECT_THAT(words, Not(HasSubstr("undisturbed")));
  EXPECT_THAT(words, HasSubstr("process effect at least 1.5%"));
  const auto& ratio = run["cases"][0]["rows"][1]["ratio"];
  EXPECT_EQ(ratio["by_restart"].size(), 4U);
  EXPECT_EQ(ratio["rests_on"], "assumed");
  EXPECT_EQ(ratio["verdict"], "faster");
}

TEST(result_of, process_effects_that_were_learned_are_said_with_their_source_and_what_is_assumed_of_the_others) {
  auto one = case_of(
      {row_of_times("eager", steady(10)), row_of_times("static", steady(5)), row_of_times("compile", steady(6))});
  const auto learned = [](const std::string& first, double variance, int runs) {
    return store::LearnedPair{{first, "eager"},
                              {.variance = variance, .df = 3.0 * runs, .restarts = 4 * runs, .runs = runs}};
  };
  one.trust.learned = {learned("aoti", 1, 3), learned("compile", 8e-6, 3)};
  const auto words = [&] {
    const auto result = result_of_cases({one});
    return first_screen(result, result.cases[0], glyphs(false)).trust;
  };
  EXPECT_THAT(words(),
              HasSubstr("process effect 0.17% (learned from 12 restarts in 3 earlier runs), else at least 1.5% "
                        "(assumed)"));
  one.trust.learned[0] = {{"eager", "static"}, {.variance = 8e-4, .df = 3, .restarts = 4, .runs = 1}};
  EXPECT_THAT(words(), HasSubstr("process effect 0.17% to 1.41% (learned from 4 restarts in 1 earlier run)"));
  EXPECT_THAT(words(), Not(HasSubstr("assumed")));
}

TEST(result_of, a_run_that_sees_only_multiples_is_called_too_noisy) {
  const auto result =
      result_of_cases({case_of({row_of_times("eager", steady(10)), row_of_times("static", steady(9, 4, 0.5))})});
  const auto run = to_json(result);
  EXPECT_EQ(run["cases"][0]["rows"][1]["ratio"]["verdict"], "inconclusive");
  const auto words = first_screen(result, result.cases[0], glyphs(false)).trust;
  EXPECT_THAT(words, HasSubstr("too noisy to compare"));
  EXPECT_THAT(words, Not(HasSubstr("smallest visible effect")));
}

TEST(result_of, a_ratio_across_modes_is_no_narrower_than_the_same_levels_side_by_side) {
  // Side by side the level's restarts part; after each other its two medians happen to be near to eager's.
  std::vector<store::Case> cases{
      case_of({row_of_times("eager", steady(10)), row_of_times("static", steady(2, 4, 0.2))}),
      case_of({row_of_times("eager", steady(9)), row_of_times("static", steady(1))}, core::Precision::bf16)};
  const auto run = to_json(result_of_cases(cases));
  const auto width = [](const Json& ratio) {
    return std::log(ratio["high"].get<double>() / ratio["low"].get<double>());
  };
  const auto paired = width(run["cases"][0]["rows"][1]["ratio"]);
  bool seen = false;
  for (const auto& point : run["accuracy"][0]["points"])
    if (point["level"] == "static" && point["precision"] == "bf16") {
      seen = true;
      EXPECT_FALSE(point["ratio"]["together"].get<bool>());
      EXPECT_GE(width(point["ratio"]), paired - 1e-9);
    }
  EXPECT_TRUE(seen);
}

TEST(result_of, a_ratio_across_modes_has_no_interval_where_the_levels_side_by_side_have_none) {
  auto once = steady(10, 1), disturbed = steady(-2, 1);
  disturbed[0][3] = 2;  // one undisturbed round: a value without a spread
  const auto run = to_json(result_of_cases(
      {case_of({row_of_times("eager", once), row_of_times("static", disturbed)}),
       case_of({row_of_times("eager", once), row_of_times("static", steady(1, 1))}, core::Precision::bf16)}));
  ASSERT_TRUE(run["cases"][0]["rows"][1]["ratio"]["high"].is_null());
  for (const auto& point : run["accuracy"][0]["points"])
    if (point["level"] == "static" && point["precision"] == "bf16") {
      EXPECT_TRUE(point["ratio"]["value"].is_number());
      EXPECT_TRUE(point["ratio"]["high"].is_null());
    }
}

TEST(result_of, the_break_even_of_an_open_verdict_is_inconclusive_and_of_a_sooner_start_nothing) {
  const auto starts = [](store::Row one, double total_ms) {
    one.start_up = {{.total_ms = total_ms}};
    return one;
  };
  const auto run = to_json(result_of_cases(
      {case_of({starts(row_of_times("eager", steady(10)), 2430), starts(row_of_times("later", steady(9, 4, 0.3)), 5000),
                starts(row_of_times("sooner", steady(9, 4, 0.3)), 14.6)})}));
  const auto& rows = run["cases"][0]["rows"];
  EXPECT_EQ(rows[1]["ratio"]["verdict"], "inconclusive");
  EXPECT_TRUE(rows[1]["break_even"]["inconclusive"].get<bool>());
  EXPECT_FALSE(rows[1]["break_even"]["never"].get<bool>());
  EXPECT_EQ(rows[2]["break_even"]["iterations"], 0);
  EXPECT_FALSE(rows[2]["break_even"]["inconclusive"].get<bool>());
}

TEST(result_of, an_a_against_a_comparison_has_each_restart_and_what_the_assumption_alone_would_say) {
  auto level = row_of_times("eager", steady(10));
  for (auto block : row_of_times("eager", {std::vector<double>(12, 9.3), std::vector<double>(12, 9.9),
                                           std::vector<double>(12, 8.5), std::vector<double>(12, 9.4)})
                        .blocks) {
    block.instance = 1;
    level.blocks.push_back(block);
  }
  store::Run run;
  run.settings.aa = true;
  run.cases = {case_of({level})};
  const auto aa = to_json(result_of(run))["cases"][0]["rows"][0]["aa"];
  EXPECT_EQ(aa["verdict"], "inconclusive");
  EXPECT_EQ(aa["if_assumed"]["verdict"], "faster");
  EXPECT_EQ(aa["by_restart"].size(), 4U);
}

}  // namespace
}  // namespace strata::report
