// SPDX-License-Identifier: Apache-2.0
// The search for a batch, on curves that are known.
#include "analysis/batch_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "analysis/find_batch.hpp"
#include "unit/made_run.hpp"

namespace strata::analysis {
namespace {

using Look = std::function<BatchObservation(std::int64_t)>;

struct Found {
  std::optional<std::int64_t> batch;
  BatchCurve curve;
};

Found search(const std::string& rule_text, const Look& look, std::int64_t low = 1, std::int64_t high = 4096) {
  const auto rule = parse_batch_rule(rule_text);
  Found found;
  while (const auto next = next_batch(*rule, found.curve, low, high)) {
    EXPECT_FALSE(found.curve.contains(*next)) << *next << " is looked at twice";
    EXPECT_TRUE(*next >= low && *next <= high);
    found.curve[*next] = look(*next);
    if (found.curve.size() > 40) break;
  }
  found.batch = best_batch(*rule, found.curve);
  return found;
}

// Every sample costs 1 ms, every batch `overhead` of them besides; memory holds 200.
BatchObservation with_overhead(std::int64_t batch, double overhead) {
  const double ms = overhead + static_cast<double>(batch);
  return {.runs = batch <= 200,
          .samples_per_s = 1e3 * static_cast<double>(batch) / ms,
          .utilisation = 1 - overhead / (2 * ms),
          .p99_ms = ms};
}

TEST(the_search_for_a_batch, ends_at_the_smallest_batch_that_is_within_two_percent_of_the_best) {
  const auto found = search("throughput", [](auto batch) { return with_overhead(batch, 1); });
  ASSERT_TRUE(found.batch);
  const double best = found.curve.at(128).samples_per_s;
  EXPECT_GE(found.curve.at(*found.batch).samples_per_s, 0.98 * best);
  EXPECT_LE(*found.batch, 48) << "49 / 50 is within two percent of one";
  EXPECT_LE(found.curve.size(), 14U);
}

TEST(the_search_for_a_batch, goes_no_further_where_nothing_is_gained) {
  const auto flat = search("throughput", [](std::int64_t) { return BatchObservation{true, 100, 1, 1}; });
  EXPECT_EQ(flat.batch, 1);
  EXPECT_EQ(flat.curve.rbegin()->first, 4);
}

TEST(the_search_for_a_batch, survives_a_dip_between_gains) {
  const auto found = search("throughput", [](std::int64_t batch) {
    return BatchObservation{true, batch == 2 ? 10.0 : 100.0 * std::min<double>(static_cast<double>(batch), 8), 1, 1};
  });
  EXPECT_GE(*found.batch, 7);
}

TEST(the_search_for_a_batch, finds_what_memory_holds_to_an_eighth) {
  const auto found = search("memory", [](auto batch) { return with_overhead(batch, 1); });
  ASSERT_TRUE(found.batch);
  EXPECT_LE(*found.batch, 200);
  EXPECT_GE(*found.batch, 175);
}

TEST(the_search_for_a_batch, keeps_p99_below_what_is_asked_for) {
  const auto found = search("p99=20ms", [](auto batch) { return with_overhead(batch, 10); });
  ASSERT_TRUE(found.batch);
  EXPECT_LE(*found.batch, 10);
  EXPECT_GE(*found.batch, 9);
}

TEST(the_search_for_a_batch, says_that_there_is_none) {
  EXPECT_FALSE(search("p99=1ms", [](auto batch) { return with_overhead(batch, 10); }).batch);
  EXPECT_FALSE(search("memory", [](std::int64_t) { return BatchObservation{.runs = false}; }).batch);
}

TEST(the_search_for_a_batch, begins_at_two_where_one_does_not_run) {
  const auto found = search("throughput", [](std::int64_t batch) { return BatchObservation{batch > 1, 100, 1, 1}; });
  EXPECT_EQ(found.batch, 2);
}

TEST(the_search_for_a_batch, stays_within_its_bounds) {
  const auto found = search(
      "throughput", [](auto batch) { return with_overhead(batch, 100); }, 3, 20);
  EXPECT_EQ(found.curve.begin()->first, 3);
  EXPECT_EQ(found.batch, 20);
}

TEST(the_search_for_a_batch, takes_the_rules_by_name_and_no_other) {
  EXPECT_EQ(parse_batch_rule("utilisation")->kind, BatchRule::Kind::utilisation);
  EXPECT_DOUBLE_EQ(parse_batch_rule("p99=1.5s")->limit_ms, 1500);
  for (const char* text : {"", "speed", "p99", "p99=", "p99=20", "p99=-1ms", "p99=20ms,memory"})
    EXPECT_FALSE(parse_batch_rule(text)) << text;
}

// A batch that was measured beside others, and looks the better for it, is none to be found.
TEST(the_best_batch, comes_from_points_that_are_reliable_and_says_which_are_not) {
  auto run = report::run_with(0.01);
  auto eight = report::run_with(0.9).cases.front();
  eight.question.batch = 8;
  eight.key = "m8";
  run.cases.push_back(eight);
  const auto grid = grid_of(run);
  const auto answers = find_batches(run, grid, {.kind = BatchRule::Kind::throughput});
  ASSERT_EQ(answers.size(), 2u);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.batch, 1) << answer.level;
    EXPECT_EQ(answer.unreliable, std::vector<std::int64_t>{8});
    EXPECT_EQ(answer.alike, std::vector<std::int64_t>{1});
  }
  for (const auto& answer : find_batches(run, grid, {.kind = BatchRule::Kind::memory})) EXPECT_EQ(answer.batch, 8);
  run.cases.erase(run.cases.begin());
  for (const auto& answer : find_batches(run, grid_of(run), {.kind = BatchRule::Kind::throughput}))
    EXPECT_FALSE(answer.batch);
}

}  // namespace
}  // namespace strata::analysis
