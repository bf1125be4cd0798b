// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/clients.hpp"

namespace strata::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Clients, are_sorted_numbers) {
  EXPECT_THAT(*parse_clients("4,1,2"), ElementsAre(1, 2, 4));
  EXPECT_THAT(*parse_clients("256"), ElementsAre(256));
}

TEST(Clients, refuse_what_is_no_number_of_requests_in_flight) {
  for (const auto& [text, why] : {std::pair{"0", "not within 1 to 256"},
                                  {"257", "not within"},
                                  {"a", "'a' is not a whole number"},
                                  {"1,,2", "a number is missing"},
                                  {"", "missing"},
                                  {"2,", "missing"},
                                  {"1,2,2", "2 is given twice"},
                                  {"-1", "not within"},
                                  {"1.5", "not a whole number"},
                                  {"99999999999", "not within"}}) {
    const auto got = parse_clients(text);
    ASSERT_FALSE(got) << text;
    EXPECT_THAT(got.error().what, HasSubstr(why)) << text;
    EXPECT_THAT(got.error().hint, HasSubstr("1,2,4"));
    EXPECT_EQ(got.error().exit, Exit::usage);
  }
}

TEST(ServiceLevel, is_a_quantile_and_a_time) {
  const auto slo = parse_slo("p99=20ms");
  ASSERT_TRUE(slo);
  EXPECT_EQ(slo->quantile, 0.99);
  EXPECT_EQ(slo->limit_ms, 20);
  EXPECT_EQ(parse_slo("p50=1.5s")->limit_ms, 1500);
  EXPECT_DOUBLE_EQ(parse_slo("p90=250us")->limit_ms, 0.25);
}

TEST(ServiceLevel, refuses_unknown_quantiles_and_times) {
  for (const auto& [text, why] : {std::pair{"p99=fast", "'fast' is not a time"},
                                  {"p98=2ms", "did you mean"},
                                  {"mean=2ms", "unknown quantile 'mean'"},
                                  {"p99=20", "has no unit"},
                                  {"p99=20h", "unknown unit 'h'"},
                                  {"p99", "no '='"},
                                  {"p99=-1ms", "above 0"},
                                  {"p99=0ms", "above 0"},
                                  {"p99=nanms", "above 0"},
                                  {"p99=1e400ms", "'"}}) {
    const auto got = parse_slo(text);
    ASSERT_FALSE(got) << text;
    EXPECT_THAT(got.error().what, HasSubstr(why)) << text;
    EXPECT_EQ(got.error().exit, Exit::usage);
  }
}

}  // namespace
}  // namespace strata::plan
