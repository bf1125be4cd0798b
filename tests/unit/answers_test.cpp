// SPDX-License-Identifier: Apache-2.0
// Reading a worker's answers: what they lack or hold that is not allowed is refused with a sentence.
#include "worker/answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::worker {
namespace {

using ::testing::HasSubstr;

TEST(Answers, refuse_another_version_before_they_look_at_other_fields) {
  const auto hello_of_another = read_hello(Json{{"api", 1}}, false);
  ASSERT_FALSE(hello_of_another);
  EXPECT_EQ(hello_of_another.error().state, State::unavailable);
  EXPECT_THAT(hello_of_another.error().what, HasSubstr("version 1; this strata speaks 2"));
  EXPECT_THAT(hello_of_another.error().hint, HasSubstr("docs/protocol.md"));
}

TEST(Answers, refuse_a_debug_build_unless_it_is_allowed) {
  const Json answer = {{"api", 2},
                       {"level", "x"},
                       {"language", "c++"},
                       {"versions", Json::object()},
                       {"build", {{"type", "address sanitizer"}}},
                       {"devices", {"cpu"}},
                       {"modes", {"infer"}},
                       {"precisions", {"fp32"}},
                       {"ops", {"hello"}},
                       {"library_ns", 1}};
  EXPECT_FALSE(read_hello(answer, false));
  EXPECT_TRUE(read_hello(answer, true));
  Json mistyped = answer;
  mistyped["devices"] = "cpu";
  const auto refused = read_hello(mistyped, true);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("\"devices\" is \"cpu\"; allowed is a list of strings"));
}

TEST(Answers, refuse_times_that_are_missing_short_negative_or_no_integers) {
  EXPECT_TRUE(read_integers(Json{{"wall_ns", {1, 2}}}, "wall_ns", 2));
  EXPECT_FALSE(read_integers(Json::object(), "wall_ns", 2));
  EXPECT_FALSE(read_integers(Json{{"wall_ns", {1}}}, "wall_ns", 2));
  EXPECT_FALSE(read_integers(Json{{"wall_ns", {1, -2}}}, "wall_ns", 2));
  EXPECT_FALSE(read_integers(Json{{"wall_ns", {1, 2.5}}}, "wall_ns", 2));
  EXPECT_FALSE(read_integers(Json{{"wall_ns", {1, 18446744073709551615ULL}}}, "wall_ns", 2));
  EXPECT_EQ(read_optional_integer(Json{{"cpu_ns", nullptr}}, "cpu_ns").value(), std::nullopt);
  EXPECT_EQ(read_optional_integer(Json{{"cpu_ns", 5}}, "cpu_ns").value(), 5);
  EXPECT_FALSE(read_optional_integer(Json{{"cpu_ns", "5"}}, "cpu_ns"));
}

}  // namespace
}  // namespace strata::worker
