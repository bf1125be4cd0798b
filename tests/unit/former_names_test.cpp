// SPDX-License-Identifier: Apache-2.0
// Options under the names that they had before.
#include "requests/former_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::requests {
namespace {

using Words = std::vector<std::string>;
using ::testing::ElementsAre;

TEST(former_names, maths_is_the_precision_of_a_case) {
  EXPECT_EQ(with_current_names({"compare", "m", "--maths", "fp32,bf16"}),
            Words({"compare", "m", "--precision", "fp32,bf16"}));
  EXPECT_EQ(with_current_names({"--maths=bf16"}), Words({"--precision=bf16"}));
}

TEST(former_names, a_precision_in_percent_is_the_width_of_an_interval) {
  for (const char* width : {"1%", "0.01", ".5%"}) {
    EXPECT_EQ(with_current_names({"--precision", width}), Words({"--ci-width", width}));
    EXPECT_EQ(with_current_names({std::string("--precision=") + width}), Words({std::string("--ci-width=") + width}));
  }
  EXPECT_EQ(with_current_names({"--maths", "bf16", "--precision", "1%"}),
            Words({"--precision", "bf16", "--ci-width", "1%"}));
}

TEST(former_names, todays_names_and_what_another_program_gets_stay) {
  for (const Words& words : {Words{"--precision", "amp-bf16"}, Words{"--ci-width", "2%"}, Words{"--precision"},
                             Words{"--name", "1%"}, Words{"level", "check", "--", "prog", "--maths", "bf16"}, Words{}})
    EXPECT_EQ(with_current_names(words), words);
}

TEST(former_names, keys_of_a_suite_follow_the_same_rules) {
  suite::Suite suite;
  suite.defaults = {{.key = "maths", .values = {"bf16"}}};
  suite.entries = {{.verb = "compare",
                    .settings = {{.key = "precision", .values = {"1%"}},
                                 {.key = "precision", .values = {"fp32", "bf16"}, .is_list = true},
                                 {.key = "batch", .values = {"1"}}}}};
  use_current_names(suite);
  EXPECT_EQ(suite.defaults.front().key, "precision");
  Words keys;
  for (const auto& setting : suite.entries.front().settings) keys.push_back(setting.key);
  EXPECT_THAT(keys, ElementsAre("ci-width", "precision", "batch"));
}

}  // namespace
}  // namespace strata::requests
