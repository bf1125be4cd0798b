// SPDX-License-Identifier: Apache-2.0
// From a stored run to its result: when it can be judged, what it recommends, and what follows from that.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/result_json.hpp"
#include "report/access.hpp"
#include "report/first_screen.hpp"
#include "report/render_file.hpp"
#include "report/result.hpp"
#include "report/terminal.hpp"
#include "store/run_state.hpp"
#include "unit/made_run.hpp"

namespace strata::report {
using lookup::at;
using lookup::flag;
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json json_of(const store::Run& run) {
  return analysis::to_json(result_of(run));
}

Json case_of(const store::Run& run) {
  return json_of(run)["cases"][0];
}

TEST(report_view, recommends_on_a_quiet_machine_and_gives_a_command_that_takes_the_level_away) {
  const auto one = case_of(run_with(0.01));
  EXPECT_EQ(text(one, "headline.level"), "static");
  EXPECT_EQ(one["next_command"], "./strata generate m -o m-static --threads 2");
  EXPECT_TRUE(flag(one, "trust.reliable"));
}

TEST(report_view, goes_on_with_a_run_that_was_cut_off_before_anything_else) {
  auto run = run_with(0.01);
  run.interrupted = true, run.finished = "2026-11-21T06:20:00Z";
  EXPECT_EQ(case_of(run)["next_command"], "./strata resume " + run.run_id);
}

TEST(report_view, says_first_that_a_run_was_cut_off_or_resumed_in_every_form) {
  auto run = run_with(0.01);
  run.interrupted = true;
  EXPECT_THAT(text(case_of(run), "headline.sentence"),
              testing::StartsWith("Interrupted; ./strata resume r goes on. Move to static"));
  EXPECT_EQ(text(json_of(run), "run.state"), "interrupted");
  run.interrupted = false;
  run.settings.resumed = 2;
  EXPECT_THAT(text(case_of(run), "headline.sentence"),
              testing::StartsWith("Resumed 2 times after it was cut off. Move to static"));
  EXPECT_EQ(number(json_of(run), "run.resumed"), 2);
  EXPECT_THAT(csv(result_of(run)), testing::AllOf(testing::StartsWith("run,run_state,run_resumed,case,"),
                                                  HasSubstr("\nr,finished,2,m/infer,eager")));
  run.settings.resumed = 1;
  EXPECT_THAT(terminal(result_of(run), {}), testing::StartsWith("Resumed once after it was cut off."));
  run.finished.clear();
  EXPECT_THAT(text(case_of(run), "headline.sentence"),
              testing::StartsWith("Resumed once after it was cut off. Not finished; ./strata resume r goes on."));
  EXPECT_THAT(text(case_of(run_with(0.01)), "headline.sentence"), testing::StartsWith("Move to static"));
}

TEST(report_view, says_of_a_run_whose_budget_is_spent_no_more_than_that) {
  auto run = run_with(0.01);
  run.interrupted = run.settings.budget_spent = true;
  EXPECT_THAT(text(case_of(run), "headline.sentence"),
              testing::StartsWith("The budget is spent; ./strata resume r goes on. Move to static"));
  EXPECT_TRUE(result_of(run).warnings.empty());
  run.settings.budget_spent = false;
  EXPECT_EQ(result_of(run).warnings.at(0).id, "W005");
}

// The first restarts of four, of a run of this process.
store::Run going_on(int restarts, double taken = 0.01) {
  auto run = run_with(taken);
  run.finished.clear();
  run.process = store::this_process();
  run.goes_on = true;
  run.settings.effort.restarts = 4;
  for (auto& level : run.cases[0].rows)
    std::erase_if(level.blocks, [&](const auto& block) { return block.restart >= restarts; });
  return run;
}

TEST(report_view, judges_nothing_of_a_run_that_goes_on_before_its_third_restart) {
  for (const int restarts : {1, 2}) {
    const auto one = case_of(going_on(restarts));
    EXPECT_EQ(text(one, "headline.verdict"), "preliminary");
    EXPECT_TRUE(at(one, "headline.level").is_null());
    EXPECT_THAT(text(one, "headline.sentence"),
                testing::StartsWith(fmt::format("Still running. Preliminary, {} of 4 restarts: differences below {}%",
                                                restarts, restarts == 1 ? 44 : 29)));
    EXPECT_EQ(one["next_command"], "");
    const auto shown = terminal(result_of(going_on(restarts)), {});
    EXPECT_THAT(shown, testing::AllOf(HasSubstr("static"), HasSubstr("4.00"), Not(HasSubstr("> static"))));
  }
  EXPECT_THAT(text(case_of(going_on(3)), "headline.sentence"), testing::StartsWith("Still running. Move to static"));
  EXPECT_EQ(text(case_of(going_on(1, 0.5)), "headline.verdict"), "not_reliable");
}

TEST(report_view, judges_two_restarts_where_no_more_were_asked_for) {
  auto run = going_on(2);
  run.settings.effort.restarts = 2;
  EXPECT_EQ(text(case_of(run), "headline.verdict"), "move");
}

TEST(report_view, recommends_nothing_where_others_had_the_cores_although_all_blocks_agree) {
  const auto one = case_of(run_with(0.5, 1.0));
  EXPECT_EQ(text(one, "headline.verdict"), "not_reliable");
  EXPECT_TRUE(at(one, "headline.level").is_null());
  EXPECT_EQ(number(one, "trust.disturbed_blocks"), number(one, "trust.blocks"));
  EXPECT_EQ(one["next_command"], "./strata compare m --threads 2")
      << "with every core taken one thread is no better off";
  for (const auto& level : list(one, "rows")) EXPECT_NE(text(level, "ratio.verdict"), "faster");
}

TEST(report_view, gives_processor_time_as_a_second_answer_where_wall_time_says_nothing) {
  auto run = run_with(0.5, 1.0);
  for (auto& level : run.cases[0].rows)
    for (auto& block : level.blocks)  // what wall time says is the load's
      block.cpu_ns = (level.level == "eager" ? 12 : 3) * 5'000'000 + 1000 * block.round;
  const auto one = case_of(run);
  EXPECT_THAT(text(one, "headline.sentence"),
              HasSubstr("; by processor time static is 3.93 to 4.07 times as fast as eager; measure "));
  EXPECT_THAT(text(one, "headline.sentence"), Not(HasSubstr("Move to")));
  EXPECT_NEAR(number(one["rows"][1], "ratio.by_processor_time.value").value_or(0), 4, 0.01);
  for (auto& level : run.cases[0].rows) level.blocks.front().cpu_ns.reset();
  EXPECT_THAT(text(case_of(run), "headline.sentence"), Not(HasSubstr("processor time"))) << "not known of every block";
  EXPECT_TRUE(at(case_of(run_with(0.01))["rows"][1], "ratio.by_processor_time").is_null());
}

TEST(report_view, advises_one_thread_where_a_core_is_left) {
  const auto one = case_of(run_with(0.45, 0.5));
  EXPECT_EQ(text(one, "headline.verdict"), "not_reliable");
  EXPECT_EQ(one["next_command"], "./strata compare m --threads 1");
}

TEST(report_view, notices_a_load_that_began_after_the_start) {
  EXPECT_EQ(text(case_of(run_with(0.5, 0.0)), "headline.verdict"), "not_reliable");
}

TEST(report_view, judges_by_what_was_undisturbed_where_others_came_for_a_part_of_the_run_only) {
  auto run = run_with(0.01);
  for (auto& level : run.cases[0].rows)
    for (auto& block : level.blocks)
      if (block.restart == 3) {
        block.taken = 0.5;
        for (auto& ns : block.wall_ns) ns = 70'000'000;
      }
  auto& load = run.cases[0].trust.load = {.begin = 0};
  analysis::add_restarts(load, {{0.01, 0, 30}, {0.5, 0, 10}});
  const auto one = case_of(run);
  EXPECT_EQ(text(one, "headline.level"), "static");
  EXPECT_NEAR(number(one["rows"][1], "ratio.value").value(), 4, 0.05);
}

TEST(report_view, a_run_of_an_older_strata_that_knows_nothing_of_others_is_judged_as_before) {
  auto run = run_with(0.5, 1.0);
  run.cases[0].trust.load = {};
  for (auto& level : run.cases[0].rows)
    for (auto& block : level.blocks) block.taken.reset();
  EXPECT_EQ(text(case_of(run), "headline.level"), "static");
}

TEST(report_view, says_which_reference_it_was_meant_to_have) {
  auto run = run_with(0.01);
  auto& one = run.cases[0];
  auto eager = row("eager", 1, 0.01, "");
  eager.state = State::unequal;
  eager.reason = "outputs, timed weights: NaN or Inf at 5 places";
  eager.info.reason_short = "NaN or Inf at 5 places";
  eager.blocks.clear();
  one.rows[0].level = one.reference_level = "libtorch";
  one.rows.insert(one.rows.begin(), eager);
  one.trust.reference_wanted = "eager";
  const auto shown = case_of(run);
  EXPECT_EQ(shown["reference_instead_of"],
            (Json{{"level", "eager"}, {"state", "unequal"}, {"reason", "NaN or Inf at 5 places"}}));
  EXPECT_THAT(
      text(shown, "headline.sentence"),
      testing::StartsWith("eager has no number (unequal: NaN or Inf at 5 places); compared with libtorch instead. "
                          "Move to static"));
}

TEST(report_view, the_recommended_level_is_in_the_ledger_also_where_the_level_it_comes_from_was_not_run) {
  auto run = run_with(0.01);
  run.cases[0].rows[1].info.from = "onednn";
  const auto edges = list(case_of(run), "ledger.edges");
  ASSERT_EQ(edges.size(), 1U);
  EXPECT_EQ(text(edges[0], "from") + " " + text(edges[0], "to") + " " + text(edges[0], "kind"), "eager static differs");
  EXPECT_EQ(edges[0]["differs"], Json({"more than one step: onednn was not measured"}));
}

TEST(report_view, a_recommended_variant_is_in_the_ledger_below_its_level) {
  auto run = run_with(0.01);
  auto variant = row("static", 8, 0.01);
  variant.variant = "measured";
  variant.info.default_text = "kernels chosen by timing";
  variant.info.generate = store::Generate{"onednn", "--tune"};
  run.cases[0].rows.push_back(variant);
  const auto one = case_of(run);
  EXPECT_EQ(text(one, "headline.level"), "static@measured");
  const auto edges = list(one, "ledger.edges");
  ASSERT_EQ(edges.size(), 2U);
  EXPECT_EQ(text(edges[1], "from") + " " + text(edges[1], "to"), "static static@measured");
  EXPECT_EQ(text(edges[1], "changes"), "kernels chosen by timing");
  EXPECT_EQ(one["next_command"], "./strata generate m -o m-static --threads 2 --tune");
}

Json limits_with(double weight_bytes, double flops, Json uncounted = Json::array()) {
  auto run = run_with(0.01);
  run.cases[0].limits = {.gflops = 100, .gbytes_per_s = 10, .quiet = true};
  run.cases[0].bundle.update(
      {{"weight_bytes", weight_bytes}, {"input_bytes", 0}, {"flops", flops}, {"flops_uncounted", uncounted}});
  return case_of(run)["limits"];
}

TEST(report_view, memory_bounds_only_what_no_cache_holds) {
  const auto large = limits_with(132e6, 1e6);
  EXPECT_EQ(large["kind"], "bound");
  EXPECT_NEAR(large["limit_ms"].get<double>(), 10, 1e-9) << "100 MB of 132 at 10 GB/s";
  const auto small = limits_with(0.8e6, 1e6);
  EXPECT_TRUE(small["memory_ms"].is_null());
  EXPECT_EQ(small["kind"], "roofline") << "arithmetic can be avoided, as Winograd does";
  EXPECT_TRUE(limits_with(0.8e6, 0)["limit_ms"].is_null());
}

TEST(report_view, work_that_is_not_counted_gives_no_limit) {
  const auto limits = limits_with(132e6, 1e9, {"lstm"});
  EXPECT_TRUE(limits["limit_ms"].is_null());
  EXPECT_TRUE(limits["kind"].is_null());
}

TEST(report_view, a_limit_of_time_is_judged_by_reliable_cases_only_and_says_which_are_not) {
  auto run = run_with(0.01);
  run.settings.slo = "p50=20ms";
  EXPECT_EQ(case_of(run)["slo"]["levels"].size(), 2U);
  EXPECT_EQ(case_of(run)["slo"]["note"], "");
  auto busy = run_with(0.5, 1.0);
  busy.settings.slo = "p50=20ms";
  const auto slo = case_of(busy)["slo"];
  EXPECT_TRUE(slo["levels"].empty());
  EXPECT_EQ(slo["note"], "not reliable at batch 1: other programs had the cores while it was measured");
}

TEST(report_view, a_limit_of_time_is_judged_for_each_size_of_images_by_itself) {
  auto run = run_with(0.01);
  run.settings.slo = "p50=20ms";
  run.cases[0].question.inputs = {{.name = "x", .shape = {1, 3, 224, 224}}};
  auto batch = run.cases[0], small = run.cases[0];
  batch.question.batch = batch.question.inputs[0].shape[0] = 8;
  small.question.inputs[0].shape = {1, 3, 96, 96};
  run.cases.push_back(batch);
  run.cases.push_back(small);
  const auto cases = json_of(run)["cases"];
  EXPECT_TRUE(cases[0]["slo"].is_object());
  EXPECT_TRUE(cases[1]["slo"].is_null()) << "another batch of the first";
  EXPECT_TRUE(cases[2]["slo"].is_object()) << "another question";
}

TEST(report_view, a_warning_is_shown_on_the_case_that_it_is_about) {
  auto run = run_with(0.01);
  run.cases.push_back(run.cases[0]);
  run.cases[0].key = "2", run.cases[0].id = "m/infer/cpu/t2";
  run.cases[1].key = "24", run.cases[1].id = "m/infer/cpu/t24";
  run.warnings = {{"W007", "m/infer/cpu/t2: parts", "more", "2"}, {"W002", "busy", "wait", ""}};
  const auto shown = result_of(run);
  EXPECT_THAT(first_screen(shown, shown.cases[0], {}).trust, HasSubstr("W007, W002"));
  const auto other = first_screen(shown, shown.cases[1], {}).trust;
  EXPECT_THAT(other, HasSubstr("W002"));
  EXPECT_THAT(other, Not(HasSubstr("W007")));
}

TEST(report_view, accuracy_has_no_ratio_to_or_from_a_case_that_is_not_reliable) {
  auto run = run_with(0.01);
  auto reduced = run_with(0.5, 1.0).cases[0];
  reduced.question.precision = core::Precision::bf16;
  run.cases.push_back(reduced);
  const auto points = json_of(run)["accuracy"][0]["points"];
  ASSERT_EQ(points.size(), 4U);
  EXPECT_TRUE(flag(points[1], "reliable") && number(points[1], "ratio.value").has_value());
  EXPECT_TRUE(points[2]["reliable"] == false && points[2]["ratio"].is_null());
  std::swap(run.cases[0].rows, run.cases[1].rows);
  std::swap(run.cases[0].trust, run.cases[1].trust);
  const auto swapped = json_of(run);
  for (const auto& point : swapped["accuracy"][0]["points"]) EXPECT_TRUE(point["ratio"].is_null()) << point;
}

TEST(report_view, has_each_warning_once) {
  auto run = run_with(0.01);
  run.warnings = {{"W002", "m/infer: busy", "wait", "m"},
                  {"W007", "m/infer: parts", "more", "m"},
                  {"W002", "m/infer: busy", "wait", "m"}};
  EXPECT_EQ(json_of(run)["warnings"].size(), 2U);
}

}  // namespace
}  // namespace strata::report
