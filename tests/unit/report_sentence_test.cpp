// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/sentence.hpp"

namespace strata::report {
namespace {

using testing::HasSubstr;
using testing::Not;

Json reference(double ms = 40) {
  return {{"level", "eager"},
          {"variant", "default"},
          {"language", "python"},
          {"reference", true},
          {"state", "measured"},
          {"end_to_end_ms", {{"estimate", ms}}},
          {"ratio", {{"value", 1.0}, {"verdict", "reference"}}},
          {"memory", {{"peak_private_bytes", 490e6}}}};
}

Json row(const std::string& level, double ratio_value, const std::string& verdict) {
  return {{"level", level},
          {"variant", "default"},
          {"language", "c++"},
          {"reference", false},
          {"peer", false},
          {"harness", false},
          {"state", "measured"},
          {"end_to_end_ms", {{"estimate", 40 / ratio_value}}},
          {"memory", {{"peak_private_bytes", 310e6}}},
          {"ratio",
           {{"value", ratio_value}, {"low", ratio_value * 0.96}, {"high", ratio_value * 1.04}, {"verdict", verdict}}},
          {"proof", {{"verdict", "equal"}, {"weak", false}}},
          {"break_even", {{"iterations", 1127.2}, {"never", false}}}};
}

Json one_case(const std::vector<Json>& rows) {
  return {{"reference_level", "eager"}, {"trust", {{"smallest_visible_percent", 5.5}}}, {"rows", rows}};
}

std::string sentence(const std::vector<Json>& rows) {
  return headline(one_case(rows)).at("sentence");
}

TEST(report_sentence, recommends_the_fastest_level_that_is_resolved_and_proven) {
  const auto said = headline(one_case(
      {reference(), row("compile", 1.2, "faster"), row("aoti", 1.6, "faster"), row("libtorch", 2.0, "not_resolved")}));
  EXPECT_EQ(said["verdict"], "move");
  EXPECT_EQ(said["level"], "aoti");
  EXPECT_EQ(said["sentence"],
            "Move to aoti: 1.60 times as fast as eager (1.54 to 1.66), 25.0 ms instead of 40.0 ms, with 180 MB less "
            "memory (310 MB); "
            "its start pays back after 1,128 iterations (28.2 s).");
}

TEST(report_sentence, names_a_peer_as_such_and_the_best_within_pytorch) {
  auto peer = row("openvino", 1.8, "faster");
  peer["peer"] = true;
  const auto said = sentence({reference(), peer, row("aoti", 1.2, "faster")});
  EXPECT_THAT(said, HasSubstr("Move to openvino (a peer)"));
  EXPECT_THAT(said, HasSubstr("the best that is no peer, aoti, reaches 1.20"));
}

TEST(report_sentence, never_recommends_a_harness_level_or_one_without_proof) {
  auto null_level = row("null_cpp", 9000, "faster");
  null_level["harness"] = true;
  auto unproven = row("libtorch", 3, "faster");
  unproven["proof"] = nullptr;
  const auto said = headline(one_case({reference(), null_level, unproven, row("compile", 1.3, "faster")}));
  EXPECT_EQ(said["level"], "compile");
}

TEST(report_sentence, says_that_memory_grows_numerics_are_looser_and_the_proof_is_weak) {
  auto looser = row("compile", 1.5, "faster");
  looser["memory"]["peak_private_bytes"] = 900e6;
  looser["proof"] = {{"verdict", "equal_looser"}, {"weak", true}};
  looser["break_even"]["iterations"] = 0;
  const auto said = sentence({reference(), looser});
  EXPECT_THAT(said, HasSubstr("410 MB more memory"));
  EXPECT_THAT(said, HasSubstr("starts no slower"));
  EXPECT_THAT(said, HasSubstr("looser"));
  EXPECT_THAT(said, HasSubstr("proof is weak"));
}

TEST(report_sentence, stays_in_python_when_everything_is_resolved_and_nothing_is_faster) {
  auto same = row("aoti", 1.0, "same");
  same["ratio"]["same_within_percent"] = 2.1;
  const auto said = headline(one_case({reference(), same, row("openvino", 0.8, "slower")}));
  EXPECT_EQ(said["verdict"], "stay");
  EXPECT_EQ(said["level"], "eager");
  EXPECT_EQ(said["sentence"],
            "Stay in Python: none of 2 levels is faster than eager (40.0 ms, 490 MB); the nearest, aoti, is the same "
            "within 2.1%.");
}

TEST(report_sentence, says_what_the_run_could_not_see_and_how_long_it_would_take) {
  auto open = row("libtorch", 1.03, "not_resolved");
  open["ratio"]["resolve"] = {{"command", "x"}, {"minutes", 9.0}};
  const auto said = headline(one_case({reference(), open, row("openvino", 0.8, "slower")}));
  EXPECT_EQ(said["verdict"], "undecided");
  EXPECT_TRUE(said["level"].is_null());
  EXPECT_THAT(said["sentence"].get<std::string>(),
              HasSubstr("libtorch is 1.03 times as fast, anything from 0.99 to 1.07"));
  EXPECT_THAT(said["sentence"].get<std::string>(), HasSubstr("below 5.5%"));
  EXPECT_THAT(said["sentence"].get<std::string>(), HasSubstr("9.00 min of measuring would resolve it"));
}

TEST(report_sentence, gives_the_reason_where_there_is_nothing_to_compare) {
  auto crashed = reference();
  crashed["state"] = "crashed";
  crashed["reason_short"] = "ended by signal 11";
  EXPECT_EQ(headline(one_case({crashed, row("aoti", 2, "faster")}))["verdict"], "no_data");
  EXPECT_THAT(sentence(std::vector<Json>(1, crashed)), HasSubstr("crashed: ended by signal 11"));
  EXPECT_THAT(sentence(std::vector<Json>(1, reference())), HasSubstr("no other level was run"));
  EXPECT_THAT(sentence(std::vector<Json>{}), HasSubstr("was not run"));
  auto failed = row("aoti", 2, "faster");
  failed["state"] = "unequal";
  EXPECT_THAT(sentence({reference(), failed}), HasSubstr("the other level has no number"));
}

TEST(report_sentence, survives_a_case_in_which_every_field_is_missing) {
  EXPECT_EQ(headline(Json::object())["verdict"], "no_data");
  EXPECT_EQ(headline(Json{{"rows", {{{"level", 7}}, nullptr}}})["verdict"], "no_data");
}

}  // namespace
}  // namespace strata::report
