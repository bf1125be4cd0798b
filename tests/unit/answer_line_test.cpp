// SPDX-License-Identifier: Apache-2.0
// What tests/fuzz searches at random, in the few cases that matter most.
#include "worker/answer_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::worker {
namespace {

using ::testing::HasSubstr;

TEST(answer_line, gives_the_fields_of_a_success) {
  const auto answer = parse_answer_line(R"({"id":7,"ok":true,"count":4})", 7, "inputs");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->failure);
  EXPECT_EQ(answer->fields["count"], 4);
}

TEST(answer_line, turns_a_failure_into_its_state_and_reason) {
  const auto answer =
      parse_answer_line(R"({"id":7,"ok":false,"code":"unsupported","what":"aten::x","hint":"use y"})", 7, "load");
  ASSERT_TRUE(answer && answer->failure);
  EXPECT_EQ(answer->failure->state, State::unsupported);
  EXPECT_EQ(answer->failure->what, "aten::x");
  EXPECT_EQ(answer->failure->hint, "use y");
}

TEST(progress, is_a_line_of_the_request_without_an_answer) {
  EXPECT_EQ(progress_in(R"({"id":7,"progress":"compiling 3 of 8"})", 7), "compiling 3 of 8");
  EXPECT_EQ(progress_in(R"({"progress":"compiling"})", std::nullopt), "compiling") << "of a prepare command";
  for (const char* line : {R"({"id":6,"progress":"x"})", R"({"progress":"x"})", R"({"id":7,"progress":5})",
                           R"({"id":7,"ok":true,"progress":"x"})", R"({"id":7,"ok":true})", R"(["progress"])",
                           R"("progress")", "progress", ""})
    EXPECT_EQ(progress_in(line, 7), std::nullopt) << line;
  const auto long_one = R"({"id":7,"progress":")" + std::string(5000, 'x') + "\"}";
  EXPECT_EQ(progress_in(long_one, 7), std::nullopt);
  EXPECT_LT(progress_in(R"({"id":7,"progress":")" + std::string(3000, 'x') + "\"}", 7)->size(), 300u);
}

TEST(answer_line, refuses_values_nested_so_deeply_that_writing_them_would_end_the_program) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_THAT(parse_answer_line(R"({"ok":true,"id":)" + deep + "}", 1, "hello").error(),
              HasSubstr("nested deeper than 64"));
  EXPECT_THAT(parse_answer_line(deep, 1, "hello").error(), HasSubstr("nested deeper than 64"));
}

TEST(answer_line, complaints_are_text_that_can_be_stored) {
  const auto answer = parse_answer_line("\xff\xfe\x01junk", 1, "hello");
  ASSERT_FALSE(answer);
  EXPECT_NO_THROW((void)Json(answer.error()).dump());
}

}  // namespace
}  // namespace strata::worker
