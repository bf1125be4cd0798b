// SPDX-License-Identifier: Apache-2.0
// The verdict on rows of a run that came to no end.
#include "analysis/judge_stored.hpp"

#include <gtest/gtest.h>

#include "analysis/result_json.hpp"
#include "report/result.hpp"

namespace strata::analysis {
namespace {

using store::Json;

store::Row unjudged(const std::string& level, std::int64_t wall_ns, const std::string& verdict = "equal") {
  store::Row row;
  row.level = level;
  row.judged = false;
  row.reason = "the run ended before this level was measured";
  row.proof = store::Proof{.verdict = verdict};
  for (int round = 0; round < 12; ++round) {
    store::Block block;
    block.round = round;
    block.wall_ns = block.latency_ns = {wall_ns, wall_ns};
    row.blocks.push_back(block);
  }
  return row;
}

store::Run run_of(std::vector<store::Row> rows) {
  store::Run run;
  run.run_id = "run-1";
  store::Case one;
  one.key = one.id = "m";
  one.question = {.model = "m"};
  one.bundle = {{"flops", 1e9}};
  one.limits = {.gflops = 100, .gbytes_per_s = 10, .quiet = true};
  one.reference_level = "eager";
  one.rows = std::move(rows);
  run.cases.push_back(std::move(one));
  return run;
}

State state_after(store::Row row) {
  auto run = run_of({std::move(row)});
  judge_stored(run);
  return run.cases[0].rows[0].state;
}

TEST(RunWithoutEnd, has_numbers_for_what_was_measured_and_proven) {
  EXPECT_EQ(state_after(unjudged("eager", 20'000'000)), State::measured);
  EXPECT_EQ(state_after(unjudged("eager", 20'000'000, "equal_looser")), State::measured);
  auto none = unjudged("eager", 20'000'000);
  none.blocks.clear();
  EXPECT_EQ(state_after(none), State::failed);
  EXPECT_EQ(state_after(unjudged("eager", 20'000'000, "none")), State::failed);
  EXPECT_EQ(state_after(unjudged("eager", 20'000'000, "unequal")), State::failed);
}

TEST(RunWithoutEnd, has_no_number_for_a_level_that_was_wrong_or_faster_than_the_machine) {
  auto wrong = unjudged("eager", 20'000'000);
  wrong.blocks.back().check = "while timing: the output differs";
  EXPECT_EQ(state_after(wrong), State::unequal);
  EXPECT_EQ(state_after(unjudged("eager", 900'000)), State::mistrusted) << "10 ms of arithmetic at the measured peak";
}

TEST(RunWithoutEnd, leaves_rows_alone_that_the_run_judged) {
  auto judged = unjudged("eager", 20'000'000);
  judged.judged = true;
  judged.state = State::crashed;
  EXPECT_EQ(state_after(judged), State::crashed);
}

TEST(RunWithoutEnd, is_shown_with_what_is_missing_of_its_proof) {
  const auto shown = to_json(report::result_of(run_of({unjudged("eager", 20'000'000)})));
  const auto& row = shown["cases"][0]["rows"][0];
  EXPECT_EQ(row["state"], "measured");
  EXPECT_EQ(row["reason"], "");
  EXPECT_EQ(row["end_to_end_ms"]["samples"], 24);
  EXPECT_EQ(row["proof"]["lines"].back()["result"], "not_checked");
  EXPECT_EQ(shown["run"]["finished"], false);
}

}  // namespace
}  // namespace strata::analysis
