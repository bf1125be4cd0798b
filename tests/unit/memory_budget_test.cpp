// SPDX-License-Identifier: Apache-2.0
#include "generate/memory_budget.hpp"

#include <gmock/gmock.h>

namespace strata::generate {
namespace {

using ::testing::HasSubstr;

TEST(MemoryBudget, reads_bytes_and_shares) {
  for (const auto& [text, bytes] : {std::pair{"200MB", 200'000'000},
                                    {"1.5kB", 1500},
                                    {"2KB", 2000},
                                    {"2KiB", 2048},
                                    {"0.5MiB", 524'288},
                                    {"1GB", 1'000'000'000},
                                    {"7B", 7}}) {
    const auto budget = parse_memory_budget(text);
    ASSERT_TRUE(budget && *budget) << text;
    EXPECT_EQ((*budget)->bytes, bytes) << text;
    EXPECT_EQ((*budget)->share, 0) << text;
  }
  EXPECT_DOUBLE_EQ((*parse_memory_budget("70%"))->share, 0.7);
  EXPECT_FALSE(*parse_memory_budget(""));
}

TEST(MemoryBudget, says_what_is_wrong_with_one_and_how_to_write_it) {
  for (const auto& [text, why] : {std::pair{"200", "the unit is missing"},
                                  {"200mb", "unknown unit 'mb'"},
                                  {"MB", "no number"},
                                  {"1.2.3MB", "no number"},
                                  {"-5MB", "no number"},
                                  {"0MB", "1 byte to"},
                                  {"9999999GB", "1 byte to"},
                                  {"0%", "more than 0%"},
                                  {"101%", "at most 100%"},
                                  {"lots", "no number"}}) {
    const auto budget = parse_memory_budget(text);
    ASSERT_FALSE(budget) << text;
    EXPECT_EQ(budget.error().exit, Exit::usage);
    EXPECT_THAT(budget.error().what, HasSubstr(why)) << text;
    EXPECT_THAT(budget.error().what, HasSubstr(std::string("--memory-budget ") + text));
    EXPECT_THAT(budget.error().hint, HasSubstr("200MB"));
  }
}

}  // namespace
}  // namespace strata::generate
