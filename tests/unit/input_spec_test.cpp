// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/case_result.hpp"
#include "plan/option_values.hpp"

namespace strata::plan {
namespace {

using Json = nlohmann::json;

TEST(InputSpecTest, reads_a_plain_shape_as_a_positional_float32) {
  const auto input = parse_input("1x3x224x224");
  ASSERT_TRUE(input) << input.error().what;
  EXPECT_EQ(*input, (core::Input{.shape = {1, 3, 224, 224}}));
}

TEST(InputSpecTest, reads_name_type_shape_and_range) {
  EXPECT_EQ(*parse_input("ids=int64:1x128:0..30521"),
            (core::Input{.name = "ids", .dtype = "int64", .shape = {1, 128}, .low = 0, .high = 30521}));
  EXPECT_EQ(*parse_input("mask=int64:1x128:1"),
            (core::Input{.name = "mask", .dtype = "int64", .shape = {1, 128}, .low = 1, .high = 1}));
  EXPECT_EQ(*parse_input("int32:4:-3..3"), (core::Input{.dtype = "int32", .shape = {4}, .low = -3, .high = 3}));
}

TEST(InputSpecTest, reads_constants_and_ranges_of_real_numbers) {
  EXPECT_EQ(*parse_input("mask=float32:1x12:1"), (core::Input{.name = "mask", .shape = {1, 12}, .low = 1, .high = 1}));
  EXPECT_EQ(*parse_input("float64:4:-0.5..1e3"),
            (core::Input{.dtype = "float64", .shape = {4}, .low = -0.5, .high = 1000}));
  EXPECT_EQ(parse_input("1x3:0..0.25")->high, 0.25);
}

TEST(InputSpecTest, refuses_what_is_no_shape_with_an_example) {
  for (const auto* text : {"", "x", "0x3", "1x-3", "1x", "=1x3", "foo:1x3", "int64:1x3:5..1", "int64:1x3:a..b",
                           "float32:1x3:1..0", "float32:1x3:0..inf", "float32:1x3:nan", "int64:1x3:0.5", "1x3:2:3:4",
                           "99999999999999999999", "4294967296x4294967296", "int64:1x3:0..9223372036854775807"}) {
    const auto input = parse_input(text);
    ASSERT_FALSE(input) << text;
    EXPECT_EQ(input.error().exit, Exit::usage) << text;
    EXPECT_NE(input.error().hint.find("1x3x224x224"), std::string::npos) << text;
  }
}

TEST(LedgerTest, draws_a_step_only_where_layout_precision_freezing_and_threads_match) {
  const Json eager{{"layout", "contiguous"}, {"precision", "fp32"}, {"freezing", false}, {"threads", 2}};
  auto other = eager;
  EXPECT_TRUE(analysis::setting_differences(eager, other).empty());
  other["layout"] = "any";
  EXPECT_TRUE(analysis::setting_differences(eager, other).empty());
  other["layout"] = "channels_last";
  other["freezing"] = true;
  EXPECT_EQ(analysis::setting_differences(eager, other),
            (std::vector<std::string>{"layout: contiguous, channels_last", "freezing: no, yes"}));
  other.erase("threads");
  EXPECT_EQ(analysis::setting_differences(eager, other).back(), "threads: 2, not reported");
}

}  // namespace
}  // namespace strata::plan
