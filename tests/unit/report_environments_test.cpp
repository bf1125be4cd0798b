// SPDX-License-Identifier: Apache-2.0
// What a run with --env says of its environments: versions, packages, and each level in one against the other.
#include <gtest/gtest.h>

#include "plan/environment.hpp"
#include "report/access.hpp"
#include "report/environments.hpp"
#include "report/sentence.hpp"
#include "unit/read_result.hpp"

namespace strata::report {
namespace {

const Json kTwo = Json::parse(R"([
  {"name":"old","python":"/o/python","torch":"2.14.1","packages":{"torch":"2.14.1","numpy":"2.4.6","six":"1.0"}},
  {"name":"new","python":"/n/python","torch":"2.15.0","packages":{"torch":"2.15.0","numpy":"2.4.6"}}])");

Json pair(const char* level, const char* verdict, double value) {
  return {{"level", level},
          {"variant", "default"},
          {"from", "old"},
          {"to", "new"},
          {"ratio",
           {{"value", value},
            {"low", value - 0.02},
            {"high", value + 0.02},
            {"verdict", verdict},
            {"same_within_percent", 1.5}}}};
}

std::string sentence_of(const Json& pairs) {
  return across_sentence(analysis::case_from({{"across_environments", pairs}}));
}

TEST(report_environments, name_their_versions_of_pytorch_where_there_are_several) {
  EXPECT_EQ(plan::torch_versions(kTwo), "2.14.1 in old, 2.15.0 in new");
  EXPECT_EQ(plan::torch_versions(Json::array({kTwo[0]})), "2.14.1");
  EXPECT_EQ(plan::torch_versions(Json::parse(R"([{"torch":"2.15.0"}])")), "2.15.0");
  EXPECT_EQ(plan::torch_versions(Json::array()), "");
}

TEST(report_environments, list_the_packages_that_are_not_the_same_in_all) {
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(package_differences(kTwo), (Rows{{"six", "1.0", ""}, {"torch", "2.14.1", "2.15.0"}}));
  EXPECT_EQ(package_differences(Json::array({kTwo[0]})), Rows{});
  EXPECT_EQ(package_differences(Json::parse(R"([1,{"packages":7},{"packages":{"a":2}}])")), Rows{});
}

TEST(report_environments, say_of_each_level_how_fast_it_is_in_the_other) {
  EXPECT_EQ(sentence_of(Json::array({pair("eager", "faster", 1.03)})),
            "eager is 1.03 (1.01 to 1.05) times as fast in new as in old.");
  EXPECT_EQ(sentence_of({pair("eager", "same", 1.0), pair("compile", "inconclusive", 0.99)}),
            "eager is as fast in new as in old, within 1.5%; compile is 0.99 (0.97 to 1.01) times as fast in new as in "
            "old, which is inconclusive.");
  auto empty = pair("eager", "inconclusive", 1);
  empty["ratio"]["value"] = nullptr;
  EXPECT_EQ(sentence_of(Json::array({empty})), "eager has no undisturbed round in both new and old.");
  EXPECT_EQ(sentence_of(Json::array()), "");
}

TEST(report_environments, come_first_in_the_headline_unless_nothing_can_be_compared) {
  Json one{{"reference_level", "eager[old]"},
           {"across_environments", Json::array({pair("eager", "faster", 1.03)})},
           {"rows",
            {{{"level", "eager"},
              {"variant", "default"},
              {"environment", "old"},
              {"reference", true},
              {"state", "measured"},
              {"end_to_end_ms", {{"estimate", 40}}}}}}};
  EXPECT_TRUE(headline(analysis::case_from(one)).sentence.starts_with("eager is 1.03 (1.01 to 1.05) times"));
  EXPECT_NE(headline(analysis::case_from(one)).sentence.find(". No comparison: eager[old] takes 40.0 ms"),
            std::string::npos);
  one["trust"] = {{"reliable", false}};
  EXPECT_TRUE(headline(analysis::case_from(one)).sentence.starts_with("Not reliable: "));
}

TEST(report_environments, name_the_interpreter_that_a_row_ran_in) {
  store::Run run;
  run.settings = {.request = {{"python", "/own/python"}}, .kept = {.store = "s.db"}};
  store::Row row;
  EXPECT_EQ(named_beside(run, row).python, "/own/python");
  EXPECT_EQ(named_beside(run, row).store, "s.db");
  run.environments = kTwo;
  EXPECT_EQ(named_beside(run, row).python, "/o/python");
  row.environment = "new";
  EXPECT_EQ(named_beside(run, row).python, "/n/python");
}

}  // namespace
}  // namespace strata::report
