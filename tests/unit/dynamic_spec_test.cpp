// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "plan/option_values.hpp"

namespace strata::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DynamicSpec, visits_both_ends_and_the_powers_of_two_between) {
  EXPECT_THAT(sizes_between(1, 32), ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(sizes_between(3, 20), ElementsAre(3, 4, 8, 16, 20));
  EXPECT_THAT(sizes_between(5, 7), ElementsAre(5, 7));
  EXPECT_THAT(sizes_between(4, 8), ElementsAre(4, 8));
}

TEST(DynamicSpec, reads_a_range) {
  const auto range = parse_dynamic("batch=2..16");
  ASSERT_TRUE(range) << range.error().what;
  EXPECT_EQ(*range, (core::OpenBatch{.low = 2, .high = 16, .sizes = {2, 4, 8, 16}}));
}

TEST(DynamicSpec, says_what_is_wrong_with_a_range_and_how_to_write_it) {
  for (const auto& [text, why] : {std::pair{"batch=32..1", "32 is above 1"},
                                  {"batch=1..1", "one size"},
                                  {"size=1..4", "unknown 'size'"},
                                  {"batch=1", "no range"},
                                  {"batch=0..4", "from 1"},
                                  {"batch=a..4", "whole numbers"},
                                  {"batch=1..", "whole numbers"},
                                  {"batch=1..9999999", "1048576"},
                                  {"..=1", "no range"}}) {
    const auto range = parse_dynamic(text);
    ASSERT_FALSE(range) << text;
    EXPECT_THAT(range.error().what, HasSubstr(why)) << text;
    EXPECT_EQ(range.error().exit, Exit::usage);
    EXPECT_FALSE(range.error().hint.empty()) << text;
  }
}

}  // namespace
}  // namespace strata::plan
