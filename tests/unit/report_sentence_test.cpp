// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/access.hpp"
#include "report/sentence.hpp"
#include "unit/read_result.hpp"

namespace strata::report {
namespace {

using analysis::HeadlineVerdict;
using ::testing::HasSubstr;
using ::testing::Not;

Json reference(double ms = 40) {
  return {{"level", "eager"},
          {"variant", "default"},
          {"language", "python"},
          {"reference", true},
          {"state", "measured"},
          {"end_to_end_ms", {{"estimate", ms}}},
          {"ratio", {{"value", 1.0}, {"verdict", "reference"}}},
          {"memory", {{"peak_private_bytes", 490'000'000}}}};
}

Json sentence_row(const std::string& level, double ratio_value, const std::string& verdict) {
  return {{"level", level},
          {"variant", "default"},
          {"language", "c++"},
          {"reference", false},
          {"peer", false},
          {"harness", false},
          {"state", "measured"},
          {"end_to_end_ms", {{"estimate", 40 / ratio_value}}},
          {"memory", {{"peak_private_bytes", 310'000'000}}},
          {"ratio",
           {{"value", ratio_value}, {"low", ratio_value * 0.96}, {"high", ratio_value * 1.04}, {"verdict", verdict}}},
          {"proof", {{"verdict", "equal"}, {"weak", false}}},
          {"break_even", {{"iterations", 1127.2}, {"never", false}}}};
}

Json one_case(const std::vector<Json>& rows) {
  return {{"reference_level", "eager"}, {"trust", {{"smallest_visible_percent", 5.5}}}, {"rows", rows}};
}

analysis::Headline headline_of(const Json& written) {
  return headline(analysis::case_from(written));
}

std::string sentence(const std::vector<Json>& rows) {
  return headline_of(one_case(rows)).sentence;
}

TEST(report_sentence, recommends_the_fastest_level_that_is_resolved_and_proven) {
  const auto shown =
      headline_of(one_case({reference(), sentence_row("compile", 1.2, "faster"), sentence_row("aoti", 1.6, "faster"),
                            sentence_row("libtorch", 2.0, "inconclusive")}));
  EXPECT_EQ(shown.verdict, HeadlineVerdict::move);
  EXPECT_EQ(shown.level, "aoti");
  EXPECT_EQ(shown.sentence,
            "Move to aoti: 1.60 times as fast as eager (1.54 to 1.66), 25.0 ms instead of 40.0 ms, with 180 MB less "
            "memory (310 MB); "
            "its start pays back after 1,128 iterations (28.2 s).");
}

TEST(report_sentence, names_a_peer_as_such_and_the_best_within_pytorch) {
  auto peer = sentence_row("openvino", 1.8, "faster");
  peer["peer"] = true;
  const auto shown = sentence({reference(), peer, sentence_row("aoti", 1.2, "faster")});
  EXPECT_THAT(shown, HasSubstr("Move to openvino (a peer)"));
  EXPECT_THAT(shown, HasSubstr("the best that is no peer, aoti, reaches 1.20"));
}

TEST(report_sentence, never_recommends_a_harness_level_or_one_without_proof) {
  auto null_level = sentence_row("null_cpp", 9000, "faster");
  null_level["harness"] = true;
  auto unproven = sentence_row("libtorch", 3, "faster");
  unproven["proof"] = nullptr;
  const auto shown = headline_of(one_case({reference(), null_level, unproven, sentence_row("compile", 1.3, "faster")}));
  EXPECT_EQ(shown.level, "compile");
}

TEST(report_sentence, says_that_memory_grows_numerics_are_looser_and_the_proof_is_weak) {
  auto looser = sentence_row("compile", 1.5, "faster");
  looser["memory"]["peak_private_bytes"] = 900'000'000;
  looser["proof"] = {{"verdict", "equal_looser"}, {"weak", true}};
  looser["break_even"]["iterations"] = 0;
  const auto shown = sentence({reference(), looser});
  EXPECT_THAT(shown, HasSubstr("410 MB more memory"));
  EXPECT_THAT(shown, HasSubstr("starts no slower"));
  EXPECT_THAT(shown, HasSubstr("looser"));
  EXPECT_THAT(shown, HasSubstr("proof is weak"));
}

TEST(report_sentence, stays_in_python_when_everything_is_resolved_and_nothing_is_faster) {
  auto same = sentence_row("aoti", 1.0, "same");
  same["ratio"]["same_within_percent"] = 2.1;
  const auto shown = headline_of(one_case({reference(), same, sentence_row("openvino", 0.8, "slower")}));
  EXPECT_EQ(shown.verdict, HeadlineVerdict::stay);
  EXPECT_EQ(shown.level, "eager");
  EXPECT_EQ(shown.sentence,
            "Stay in Python: none of 2 levels is faster than eager (40.0 ms, 490 MB); the nearest, aoti, is the same "
            "within 2.1%.");
}

TEST(report_sentence, says_what_the_run_could_not_see_and_how_long_it_would_take) {
  auto open = sentence_row("libtorch", 1.03, "inconclusive");
  open["ratio"]["resolve"] = {{"command", "x"}, {"minutes", 9.0}};
  const auto shown = headline_of(one_case({reference(), open, sentence_row("openvino", 0.8, "slower")}));
  EXPECT_EQ(shown.verdict, HeadlineVerdict::undecided);
  EXPECT_EQ(shown.level, "");
  EXPECT_THAT(shown.sentence, HasSubstr("libtorch is 1.03 times as fast, anything from 0.99 to 1.07"));
  EXPECT_THAT(shown.sentence, HasSubstr("below 5.5%"));
  EXPECT_THAT(shown.sentence, HasSubstr("9.00 min of measuring would resolve it"));
}

Json crowded(std::vector<Json> rows) {
  auto one = one_case(rows);
  one["trust"] = {{"reliable", false},      {"others_begin_percent", 50.2},
                  {"others_percent", 38.0}, {"one_thread_fits", true},
                  {"blocks", 426},          {"disturbed_blocks", 420}};
  return one;
}

TEST(report_sentence, recommends_nothing_where_other_programs_had_the_cores) {
  const auto shown = headline_of(crowded({reference(), sentence_row("static", 284, "faster")}));
  EXPECT_EQ(shown.verdict, HeadlineVerdict::not_reliable);
  EXPECT_EQ(shown.level, "");
  EXPECT_EQ(shown.sentence,
            "Not reliable: other programs use 50% of this machine; measure with --threads 1 or on an idle machine.");
}

TEST(report_sentence, does_not_advise_one_thread_where_all_cores_are_taken_and_names_another_run) {
  auto one = crowded({reference(), sentence_row("static", 284, "faster")});
  one["trust"].update({{"others_begin_percent", 100.0}, {"one_thread_fits", false}, {"other_run", 1234}});
  EXPECT_EQ(
      headline_of(one).sentence,
      "Not reliable: other programs use 100% of this machine, another strata run is measuring (pid 1234); measure "
      "on an idle machine.");
}

TEST(report_sentence, recommends_no_best_variant_either_where_other_programs_had_the_cores) {
  auto fast = sentence_row("static", 284, "faster");
  fast["tuned"] = {{"ratio", fast["ratio"]}, {"break_even", fast["break_even"]}};
  auto eager = reference();
  eager["tuned"] = {{"ratio", {{"value", 1.0}, {"verdict", "reference"}}}, {"break_even", nullptr}};
  const auto shown = tuned_headline(analysis::case_from(crowded({eager, fast})));
  EXPECT_EQ(shown.verdict, HeadlineVerdict::not_reliable);
  EXPECT_EQ(shown.level, "");
}

TEST(report_sentence, says_first_that_the_reference_is_not_the_one_that_was_wanted) {
  auto libtorch = reference();
  libtorch["level"] = "libtorch";
  libtorch["language"] = "c++";
  auto one = one_case({libtorch, sentence_row("static", 2.26, "faster")});
  one["reference_level"] = "libtorch";
  one["reference_instead_of"] = {{"level", "eager"}, {"state", "unequal"}, {"reason", "NaN or Inf at 5 places"}};
  EXPECT_THAT(headline_of(one).sentence,
              testing::StartsWith("eager has no number (unequal: NaN or Inf at 5 places); compared with libtorch "
                                  "instead. Move to static: 2.26 times as fast as libtorch"));
}

TEST(report_sentence, stays_with_a_peer_and_not_in_python_where_there_is_no_python_module) {
  auto runtime = reference();
  runtime["level"] = "onnxruntime";
  runtime["peer"] = true;
  EXPECT_THAT(sentence({runtime, sentence_row("openvino", 0.8, "slower")}),
              HasSubstr("Stay with onnxruntime: openvino is not faster than onnxruntime"));
}

TEST(report_sentence, says_that_rounds_were_disturbed_where_levels_have_times_and_no_ratio) {
  auto alone = sentence_row("aoti", 2, "faster");
  alone["ratio"] = {{"value", nullptr}, {"verdict", "inconclusive"}};
  auto eager = reference();
  eager["end_to_end_ms"]["estimate"] = nullptr;
  auto one = one_case({eager, alone});
  one["trust"].update({{"blocks", 155}, {"disturbed_blocks", 139}});
  EXPECT_EQ(headline_of(one).sentence,
            "No comparison: too few undisturbed rounds (139 of 155 blocks were disturbed); the times below are not "
            "comparable.");
}

TEST(report_sentence, prints_no_time_that_is_not_known) {
  auto eager = reference();
  eager["end_to_end_ms"]["estimate"] = nullptr;
  EXPECT_THAT(sentence(std::vector<Json>(1, eager)), Not(HasSubstr("unknown")));
  eager["end_to_end_ms"]["median"] = 0.653;
  EXPECT_THAT(sentence(std::vector<Json>(1, eager)), HasSubstr("eager takes 653 us"));
}

TEST(report_sentence, prints_no_absurd_percentages_or_intervals) {
  auto open = sentence_row("libtorch", 1.4, "inconclusive");
  open["ratio"]["low"] = 0.002;
  open["ratio"]["high"] = 205e6;
  open["ratio"]["smallest_visible_percent"] = 44457.56;
  const auto shown = sentence({reference(), open});
  EXPECT_THAT(shown, HasSubstr("this run is too noisy to compare"));
  EXPECT_THAT(shown, Not(HasSubstr("44457")));
  EXPECT_THAT(shown, Not(HasSubstr("million")));
}

TEST(report_sentence, gives_the_reason_where_there_is_nothing_to_compare) {
  auto crashed = reference();
  crashed["state"] = "crashed";
  crashed["reason_short"] = "ended by signal 11";
  EXPECT_EQ(headline_of(one_case({crashed, sentence_row("aoti", 2, "faster")})).verdict, HeadlineVerdict::no_data);
  EXPECT_THAT(sentence(std::vector<Json>(1, crashed)), HasSubstr("crashed: ended by signal 11"));
  EXPECT_THAT(sentence(std::vector<Json>(1, reference())), HasSubstr("no other level was run"));
  EXPECT_THAT(sentence(std::vector<Json>{}), HasSubstr("was not run"));
  auto failed = sentence_row("aoti", 2, "faster");
  failed["state"] = "unequal";
  EXPECT_THAT(sentence({reference(), failed}), HasSubstr("the other level has no number"));
}

TEST(report_sentence, survives_a_case_in_which_every_field_is_missing) {
  EXPECT_EQ(headline({}).verdict, HeadlineVerdict::no_data);
  EXPECT_EQ(headline({.rows = {{.level = "7"}, {}}}).verdict, HeadlineVerdict::no_data);
}

TEST(report_sentence, a_run_that_sees_only_multiples_is_called_too_noisy_without_a_number) {
  auto open = sentence_row("libtorch", 3.0, "inconclusive");
  open["ratio"]["smallest_visible_percent"] = 44457.56;
  const auto shown = sentence({reference(), open});
  EXPECT_THAT(shown, HasSubstr("too noisy to compare"));
  EXPECT_THAT(shown, Not(HasSubstr("44")));
}

}  // namespace
}  // namespace strata::report
