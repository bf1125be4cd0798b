// SPDX-License-Identifier: Apache-2.0
// What is said of a whole sweep: crossings, stretches with one fastest level, how far a level is behind; and how often
// that is wrong in simulated sweeps.
#include "analysis/crossing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stats/schedule.hpp"
#include "unit/made_grid.hpp"

namespace strata::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::vector<FasterLevel> ahead_of(const std::vector<double>& leads, double half_width, double minimum_effect = 0.01) {
  std::vector<stats::Comparison> all;
  for (const double lead : leads) all.push_back(made_comparison(lead, half_width));
  std::vector<const stats::Comparison*> line;
  for (const auto& one : all) line.push_back(&one);
  return ahead_along(line, minimum_effect);
}

const GridAxis kBatch{"batch", {"1", "2", "4", "8", "16", "32"}}, kSize{"size", {"32", "64"}};

TEST(Crossing, lies_between_the_last_point_with_one_ahead_and_the_first_with_the_other) {
  const auto line = ahead_of({-0.5, -0.3, -0.02, 0.01, 0.3, 0.6}, 0.1);
  const auto brackets = brackets_of(line);
  ASSERT_EQ(brackets.size(), 1U);
  EXPECT_EQ(brackets[0].from, 1U);
  EXPECT_EQ(brackets[0].to, 4U);
}

TEST(Crossing, is_none_where_the_intervals_never_tell_or_one_level_is_ahead_throughout) {
  EXPECT_THAT(brackets_of(ahead_of({-0.05, 0.02, 0.05}, 0.1)), IsEmpty());
  EXPECT_THAT(brackets_of(ahead_of({0.5, 0.02, 0.5}, 0.1)), IsEmpty());
  EXPECT_THAT(brackets_of(ahead_of({-5, 5}, kInfinite)), IsEmpty());
  EXPECT_THAT(brackets_of({}), IsEmpty());
}

TEST(Crossing, there_and_back_are_two) {
  EXPECT_EQ(brackets_of(ahead_of({-0.5, 0.5, 0, -0.5}, 0.1)).size(), 2U);
}

TEST(Crossing, the_more_points_are_looked_at_the_more_it_takes_to_decide_one) {
  EXPECT_THAT(ahead_of({0.105}, 0.1), ElementsAre(FasterLevel::second));
  EXPECT_THAT(ahead_of({0.105, 0}, 0.1), ElementsAre(FasterLevel::undecided, FasterLevel::undecided));
  stats::Comparison one = made_comparison(0.105, 0.1);
  EXPECT_THAT(ahead_along({&one, nullptr, nullptr}, 0.01),
              ElementsAre(FasterLevel::second, FasterLevel::undecided, FasterLevel::undecided));
}

TEST(Crossing, no_level_is_ahead_by_less_than_the_least_effect) {
  EXPECT_THAT(ahead_of({0.005}, 0.001), ElementsAre(FasterLevel::undecided));
}

// "a" is the faster at small batches; with larger images "b" takes over sooner; "c" is behind both throughout.
TEST(Crossing, is_found_on_each_line_of_the_grid_and_says_whether_it_is_of_the_fastest) {
  const auto grid = made_grid({kBatch, kSize}, {"a", "b", "c"},
                              by_times(
                                  [](const Places& at, std::size_t level) {
                                    if (level == 2) return 3.0 - 0.9 * static_cast<double>(at[0] == 5);
                                    const bool late = at[0] >= 4 - 2 * at[1];
                                    return level == (late ? 1U : 0U) ? 0.0 : 0.4;
                                  },
                                  0.1));
  const auto all = crossings_of(grid);
  ASSERT_EQ(all.size(), 4U);  // two along batch, two (batches 4 and 8) along size
  for (const auto& one : all) {
    EXPECT_TRUE(one.of_the_fastest);
    EXPECT_EQ(one.before + one.after, "ab");
  }
  EXPECT_EQ(all[0].at, (std::vector<std::string>{"", "32"}));
  EXPECT_EQ(all[0].from + " " + all[0].to, "8 16");
  EXPECT_EQ(all[1].from + " " + all[1].to, "2 4");
  EXPECT_EQ(all[2].at, (std::vector<std::string>{"4", ""}));
}

TEST(Crossing, of_two_levels_behind_a_third_is_no_crossing_of_the_fastest) {
  const auto grid = made_grid({kBatch}, {"a", "b", "c"},
                              by_times(
                                  [](const Places& at, std::size_t level) {
                                    if (level == 2) return -1.0;
                                    return level == (at[0] < 3 ? 0U : 1U) ? 0.0 : 0.4;
                                  },
                                  0.1));
  const auto all = crossings_of(grid);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].of_the_fastest);
}

TEST(Crossing, words_are_no_axis_to_cross_along) {
  const GridAxis mode{"mode", {"infer", "train"}};
  const auto grid =
      made_grid({mode}, {"a", "b"},
                by_times([](const Places& at, std::size_t level) { return level == at[0] ? 0.0 : 0.4; }, 0.1));
  EXPECT_THAT(crossings_of(grid), IsEmpty());
  const auto stretches = stretches_of(grid);
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_EQ(stretches[0].level, "a");
  EXPECT_EQ(stretches[1].level, "b");
}

// From each end, as far as every field of a value has the same single fastest level.
TEST(Stretch, goes_from_an_end_of_an_axis_to_the_first_value_with_a_field_that_another_level_may_win) {
  const auto grid = made_grid({kBatch, kSize}, {"a", "b"},
                              by_times(
                                  [](const Places& at, std::size_t level) {
                                    if (at[0] == 3) return at[1] == 1 ? 0.0 : 0.4 * static_cast<double>(level);
                                    return level == (at[0] < 3 ? 0U : 1U) ? 0.0 : 0.4;
                                  },
                                  0.1));
  const auto stretches = stretches_of(grid);
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_EQ(stretches[0].level, "a");
  EXPECT_EQ(stretches[0].first, 0U);
  EXPECT_EQ(stretches[0].last, 2U);
  EXPECT_EQ(stretches[1].level, "b");
  EXPECT_EQ(stretches[1].first, 4U);
  EXPECT_EQ(stretches[1].last, 5U);
}

TEST(Stretch, is_the_whole_grid_where_one_level_is_the_fastest_everywhere_and_no_field_is_missing) {
  auto grid = made_grid({kBatch, kSize}, {"a", "b"},
                        by_times([](const Places&, std::size_t level) { return level == 0 ? 0.0 : 0.4; }, 0.1));
  auto all = stretches_of(grid);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].axis, std::nullopt);
  grid.cells.pop_back();  // batch 32, size 64
  all = stretches_of(grid);
  ASSERT_EQ(all.size(), 2U);  // up to batch 16; at size 32
  EXPECT_EQ(all[0].last, 4U);
  EXPECT_EQ(all[1].axis, 1U);
  EXPECT_EQ(all[1].last, 0U);
}

Gap gap_for(const std::vector<double>& leads, double half_width) {
  std::vector<stats::Comparison> all;
  for (const double lead : leads) all.push_back(made_comparison(lead, half_width));
  std::vector<const stats::Comparison*> others;
  for (const auto& one : all) others.push_back(&one);
  return gap_of(others);
}

TEST(Gap, is_what_the_intervals_of_all_other_levels_decide) {
  EXPECT_EQ(gap_for({0.01, -1}, 0.02), Gap::within);
  EXPECT_EQ(gap_for({-1, -0.5}, 0.02), Gap::within);
  EXPECT_EQ(gap_for({0.01, 0.8}, 0.02), Gap::far);
  EXPECT_EQ(gap_for({0.3, 0.2}, 0.02), Gap::between);
  EXPECT_EQ(gap_for({0.1, -1}, 0.02), Gap::unknown);   // across 10%
  EXPECT_EQ(gap_for({0.69, -1}, 0.02), Gap::unknown);  // across 100%
  EXPECT_EQ(gap_for({0.01, kInfinite}, kInfinite), Gap::unknown);
  EXPECT_EQ(gap_for({}, 0.02), Gap::within);
}

TEST(Gap, of_each_field_is_counted_and_fields_without_a_number_apart) {
  auto grid = made_grid({kBatch}, {"a", "b"},
                        by_times(
                            [](const Places& at, std::size_t level) {
                              const double behind[] = {0, 0.3, 0.095, 1, 1, 1};
                              return level == 0 ? behind[at[0]] : 0.0;
                            },
                            0.02));
  grid.cells[4].reliable = false;
  grid.cells[4].best.clear();
  grid.cells[4].comparisons.clear();
  grid.cells[5].levels.at("a") = {.state = State::out_of_memory};
  const auto standings = standings_of(grid);
  ASSERT_EQ(standings.size(), 2U);
  const auto& a = standings[0];
  EXPECT_EQ(a.points, 5U);
  EXPECT_EQ(a.within, 1U);
  EXPECT_EQ(a.between, 1U);
  EXPECT_EQ(a.far, 1U);
  EXPECT_EQ(a.unknown, 2U);
  EXPECT_EQ(a.without, 1U);
  EXPECT_EQ(a.open, 1U);
  EXPECT_EQ(standings[1].alone, 4U);  // the field without "a" still says that "b" is
}

double normal_of(stats::Random& random) {
  const double u = (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// Log times as [field][restart][level][round] around the true ones: processes part by 2%.
// With `shared`, a process serves every field of a restart and brings its offset into all of them.
struct Simulated {
  static constexpr int kRestarts = 4, kRounds = 6;
  std::vector<std::vector<std::vector<std::vector<double>>>> log_times;

  Simulated(const std::vector<std::vector<double>>& truth, bool shared, stats::Random& random) {
    std::vector<std::vector<double>> offsets(kRestarts);
    for (const auto& field : truth) {
      auto& own = log_times.emplace_back(kRestarts);
      for (std::size_t r = 0; r < kRestarts; ++r) {
        if (!shared) offsets[r].clear();
        for (std::size_t level = 0; level < field.size(); ++level) {
          if (offsets[r].size() <= level) offsets[r].push_back(0.02 * normal_of(random));
          auto& rounds = own[r].emplace_back();
          for (int k = 0; k < kRounds; ++k)
            rounds.push_back(field[level] + offsets[r][level] + 0.003 * normal_of(random));
        }
      }
    }
  }
  stats::Comparison compare(std::size_t field, std::size_t reference, std::size_t level, double assumed = 0.02) const {
    std::vector<std::vector<double>> differences;
    for (const auto& restart : log_times[field]) {
      differences.emplace_back();
      for (std::size_t k = 0; k < kRounds; ++k) differences.back().push_back(restart[reference][k] - restart[level][k]);
    }
    return stats::compare(differences, assumed);
  }
};

// Two equal levels at six points of a line: each decided point is wrong. Next to nothing is assumed of processes, so
// that intervals rest on the restarts alone and are as narrow as the rule allows.
double share_of_lines_wrongly_decided(bool shared) {
  constexpr int kRuns = 1000;
  stats::Random random(23);
  int wrong = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Simulated simulated(std::vector(6, std::vector<double>{0, 0}), shared, random);
    std::vector<stats::Comparison> all;
    for (std::size_t field = 0; field < 6; ++field) all.push_back(simulated.compare(field, 0, 1, 0.001));
    std::vector<const stats::Comparison*> line;
    for (const auto& one : all) line.push_back(&one);
    const auto ahead = ahead_along(line, 0);
    wrong += std::any_of(ahead.begin(), ahead.end(), [](FasterLevel one) { return one != FasterLevel::undecided; });
  }
  return static_cast<double>(wrong) / kRuns;
}

TEST(CrossingSimulated, equal_levels_are_told_apart_anywhere_on_no_more_than_one_line_of_a_hundred) {
  const double bound = 0.015;  // of 1,000 lines at a rate of 1%: exceeded in one of twenty such tests
  EXPECT_LE(share_of_lines_wrongly_decided(false), bound);
  EXPECT_LE(share_of_lines_wrongly_decided(true), bound);
}

// One level is ahead by half at the beginning and behind by as much at the end; they are equal at the fourth of six
// points.
TEST(CrossingSimulated, a_crossing_is_bracketed_nearly_always_and_almost_never_where_it_is_not) {
  constexpr int kRuns = 300;
  stats::Random random(5);
  int bracketed = 0, elsewhere = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<double>> truth;
    for (int x = 0; x < 6; ++x) truth.push_back({0.2 * (x - 3), 0});
    const Simulated simulated(truth, run % 2 == 0, random);
    std::vector<stats::Comparison> all;
    for (std::size_t field = 0; field < 6; ++field) all.push_back(simulated.compare(field, 0, 1));
    std::vector<const stats::Comparison*> line;
    for (const auto& one : all) line.push_back(&one);
    for (const auto& bracket : brackets_of(ahead_along(line, 0.01))) {
      const bool right = bracket.from < 3 && bracket.to > 3;
      bracketed += right;
      elsewhere += !right;
    }
  }
  EXPECT_GE(bracketed, kRuns * 95 / 100);
  EXPECT_LE(elsewhere, kRuns / 100);
}

// "a" is the fastest up to the second batch; at the third one field has an equal level, so that a longer stretch is
// wrong.
TEST(CrossingSimulated, a_stretch_reaches_too_far_in_no_more_than_one_sweep_of_a_hundred) {
  constexpr int kRuns = 600;
  const GridAxis batch{"batch", {"1", "2", "4", "8"}}, size{"size", {"32", "64"}};
  stats::Random random(77);
  int too_far = 0, found = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<double>> truth;
    for (int b = 0; b < 4; ++b)
      for (int s = 0; s < 2; ++s) truth.push_back({0, b == 2 && s == 1 ? 0.0 : 0.2, 0.4});
    const Simulated simulated(truth, run % 2 == 0, random);
    auto grid = made_grid({batch, size}, {"a", "b", "c"}, [&](const Places& at, std::size_t i, std::size_t j) {
      return simulated.compare(at[0] * 2 + at[1], i, j, 0.001);
    });
    for (const auto& one : stretches_of(grid))
      if (!one.axis) {
        ++too_far;
      } else if (*one.axis == 0 && one.first == 0) {
        too_far += one.last > 1;
        found += one.level == "a" && one.last >= 1;
      }
  }
  EXPECT_LE(too_far, kRuns / 100);
  EXPECT_GE(found, kRuns * 95 / 100);
}

// A level that is just 10%, or just 100%, behind the fastest: whatever is decided may be called wrong.
TEST(CrossingSimulated, a_gap_at_its_limit_is_decided_in_no_more_than_one_point_of_a_hundred) {
  constexpr int kRuns = 1000;
  stats::Random random(3);
  int decided = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Simulated simulated({{std::log1p(run % 2 == 0 ? kNear : kFar), 0, 0.5}}, false, random);
    const auto first = simulated.compare(0, 0, 1, 0.001), second = simulated.compare(0, 0, 2, 0.001);
    decided += gap_of({&first, &second}) != Gap::unknown;
  }
  EXPECT_LE(decided, kRuns * 15 / 1000);
}

}  // namespace
}  // namespace strata::analysis
