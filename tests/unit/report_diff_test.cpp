// SPDX-License-Identifier: Apache-2.0
// Two runs against each other: what passes a threshold, what could not be compared, and what was changed on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/difference.hpp"
#include "report/diff.hpp"
#include "unit/made_run.hpp"

namespace strata::report {
namespace {

using analysis::difference_of;
using analysis::Gate;
using analysis::gate_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

store::Run run_of(double taken, double static_ms = 10) {
  auto run = run_with(taken);
  auto& one = run.cases.front();
  one.rows[1] = row("static", static_ms, taken);
  one.network = "graph";
  one.bundle["case"] = {{"weights_label", "seed0"}};
  one.bundle["network"] = {{"sha256", "weights"}};
  one.bundle["read"] = {{{"path", "/home/me/net.py"}, {"sha256", "code"}},
                        {{"path", "/env/site-packages/torch/nn.py"}, {"sha256", "theirs"}}};
  one.bundle["flops"] = 1e9;
  return run;
}

TEST(Gate, tells_a_regression_from_what_may_be_one_by_where_the_interval_lies) {
  EXPECT_EQ(gate_of({0.90, 0.88, 0.94}, 0.05), Gate::slower);
  EXPECT_EQ(gate_of({0.94, 0.90, 0.98}, 0.05), Gate::open);
  EXPECT_EQ(gate_of({1.00, 0.90, 1.10}, 0.05), Gate::open);
  EXPECT_EQ(gate_of({0.97, 0.96, 0.98}, 0.05), Gate::passes) << "slower, but by less";
  EXPECT_EQ(gate_of({}, 0.05), Gate::not_compared);
}

TEST(report_diff, of_a_level_that_got_slower_says_by_how_much_it_passes_or_fails) {
  const auto before = run_of(0.01), after = run_of(0.01, 20);
  const auto result = difference_of(before, after, 0.05);
  EXPECT_EQ(result.beyond, 1);
  EXPECT_EQ(result.not_compared, 0);
  EXPECT_THAT(difference_document(result).summary, StartsWith("1 of 2 levels slower (1 by more than 5%), 0 faster"));
  EXPECT_EQ(difference_of(before, after, 1.5).beyond, 0);
}

TEST(report_diff, is_written_with_null_for_what_is_not_known) {
  const auto json = to_json(difference_of(run_of(0.5), run_of(0.01, 20), 0.05));
  EXPECT_EQ(json["schema"], "strata.diff/1");
  EXPECT_EQ(json["before"]["run"], "r");
  const auto& level = json["levels"][1];
  EXPECT_NEAR(level["after_ms"].get<double>(), 20, 0.1);
  EXPECT_EQ(level["verdict"], "not_reliable");
  EXPECT_EQ(level["gate"], "not_compared");
  for (const char* name : {"environment", "ratio", "speedup_change"}) EXPECT_TRUE(level.at(name).is_null()) << name;
  const auto compared = to_json(difference_of(run_of(0.01), run_of(0.01, 20), 0.05))["levels"][1];
  EXPECT_NEAR(compared["ratio"]["value"].get<double>(), 0.5, 0.01);
  EXPECT_NEAR(compared["speedup_change"]["value"].get<double>(), 0.5, 0.01);
}

TEST(report_diff, counts_in_its_first_line_what_could_not_be_compared) {
  const auto result = difference_of(run_of(0.5), run_of(0.01, 20), 0.05);
  EXPECT_EQ(result.not_compared, 2);
  EXPECT_EQ(result.beyond, 0);
  EXPECT_EQ(difference_document(result).summary,
            "0 of 2 levels slower, 0 faster; 2 of 2 could not be compared: not reliable.");
}

TEST(report_diff, compares_what_was_changed_on_purpose_and_says_which) {
  const auto before = run_of(0.01);
  const auto note_after = [&](auto change) {
    auto after = run_of(0.01);
    after.cases.front().network = "another";
    change(after.cases.front());
    const auto result = difference_of(before, after, 0.05);
    EXPECT_EQ(result.cases, 1);
    EXPECT_EQ(result.not_compared, 0);
    return result.notes.empty() ? std::string() : result.notes.back();
  };
  EXPECT_EQ(note_after([](auto& one) { one.bundle["read"][0]["sha256"] = "other"; }),
            "changed in m/infer: code (net.py)");
  EXPECT_EQ(note_after([](auto& one) { one.bundle["network"]["sha256"] = "trained"; }), "changed in m/infer: weights");
  EXPECT_EQ(note_after([](auto& one) { one.bundle["read"][1]["sha256"] = "newer"; }),
            "changed in m/infer: captured graph")
      << "packages are named as PyTorch's versions are";
  EXPECT_EQ(note_after([](auto& one) {
              one.question.weights = "b.safetensors";
              one.key = core::key_of(one.question);
              one.bundle["case"]["weights_label"] = "b.safetensors";
              one.bundle["network"]["sha256"] = "trained";
            }),
            "changed in m/infer: weights (seed0, then b.safetensors)");
}

TEST(report_diff, leaves_another_question_out) {
  auto after = run_of(0.01);
  after.cases.front().question.batch = 8;
  after.cases.front().key = "m8";
  const auto result = difference_of(run_of(0.01), after, 0.05);
  EXPECT_EQ(result.cases, 0);
  EXPECT_EQ(result.without.at(0).reason, "not in the later run");
}

}  // namespace
}  // namespace strata::report
