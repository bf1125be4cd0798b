// SPDX-License-Identifier: Apache-2.0
// JSON from outside: what is refused before it is parsed, what a field must be, and what a captured network's
// description must hold.
#include "common/outside.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "core/bundle_info.hpp"

namespace strata::outside {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto value = parse(text, "it");
  return value ? "read" : value.error().what;
}

TEST(JsonFromOutside, is_refused_when_it_is_nested_100000_deep) {
  for (const auto& [open, close] : {std::pair<std::string, std::string>{"[", "]"}, {"{\"a\":", "}"}}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += open;
    deep += "1";
    for (int i = 0; i < 100'000; ++i) deep += close;
    EXPECT_THAT(error_of(deep), HasSubstr("nested deeper than 64"));
  }
}

TEST(JsonFromOutside, is_read_in_linear_time_and_within_bounds) {
  std::string many = "[";
  for (int i = 0; i < 2'000'000; ++i) many += i ? ",{}" : "{}";
  const auto begin = std::clock();
  EXPECT_EQ(error_of(many + "]"), "read");
  EXPECT_LT(std::clock() - begin, 30 * CLOCKS_PER_SEC);  // quadratic, it did not end
  std::string more = "[";
  for (int i = 0; i < 6'000'000; ++i) more += i ? ",0" : "0";
  EXPECT_THAT(error_of(more + "]"), HasSubstr("more than 5000000 values"));
  EXPECT_THAT(parse("[1]", "it", {.bytes = 2}).error().what, HasSubstr("larger than 2 bytes"));
}

TEST(JsonFromOutside, that_is_damaged_is_refused_with_text_that_can_be_stored) {
  for (const char* text : {"", "{", "[1,", "\xff", "{\"\xc3\":1}", "1e999", "nul", "{}x"}) {
    const auto value = parse(text, "it");
    ASSERT_FALSE(value) << text;
    EXPECT_NO_THROW((void)Json(value.error().what).dump());
  }
}

TEST(Fields, keep_the_first_complaint_with_what_where_got_and_allowed) {
  const Json object = {{"a", "x"}, {"b", 7}, {"c", {1, 2, -3}}};
  Fields fields(object, "the answer to load");
  EXPECT_EQ(fields.text("a"), "x");
  EXPECT_EQ(fields.integer("b", 0, 10), 7);
  EXPECT_FALSE(fields.error());
  EXPECT_EQ(fields.integer("b", 0, 5), 0);
  EXPECT_EQ(fields.error()->what, "the answer to load: \"b\" is 7; allowed is an integer from 0 to 5");
  Fields second(object, "it");
  EXPECT_TRUE(second.integers("c", std::nullopt, 0, 10).empty());
  EXPECT_EQ(second.error()->what, "it: \"c\" holds -3; allowed is a list of integers from 0 to 10");
  Fields third(object, "it");
  EXPECT_EQ(third.number("d", 0, 1), 0);
  EXPECT_EQ(third.error()->what, "it: the field \"d\" is missing; allowed is a number from 0 to 1");
  const Json no_object = 5;
  EXPECT_EQ(Fields(no_object, "it").error()->what, "it: 5; allowed is a JSON object");
}

TEST(Fields, take_no_number_that_the_type_cannot_hold) {
  for (const Json& value : {Json(18446744073709551615ULL), Json(1e300), Json(0.5), Json(true), Json("5"), Json()}) {
    const Json object = {{"n", value}};
    Fields fields(object, "it");
    fields.integer("n", 0, std::numeric_limits<std::int64_t>::max());
    EXPECT_TRUE(fields.error()) << value;
    EXPECT_EQ(integer_or(object, "n", 3), 3);
  }
}

TEST(Fields, that_are_only_shown_read_as_absent_when_they_are_something_else) {
  const Json object = {{"t", 5}, {"n", "x"}, {"f", 1}};
  EXPECT_EQ(text_or(object, "t", "none"), "none");
  EXPECT_EQ(number_or(object, "n", 2.5), 2.5);
  EXPECT_TRUE(flag_or(object, "f", true));
  EXPECT_EQ(text_or(Json(5), "t"), "");
}

TEST(BundleInfo, names_the_field_that_is_wrong) {
  const Json good = {{"bundle", 2},
                     {"spec", Json::object()},
                     {"case", {{"threads", 2}, {"mode", "infer"}}},
                     {"model", {{"name", "x"}}},
                     {"ring", 4},
                     {"inputs", Json::array()},
                     {"outputs", {{{"name", "output"}, {"dtype", "float32"}, {"shape", {1, 2}}}}}};
  EXPECT_TRUE(core::check_bundle_info(good, "b", true));
  const auto error = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    const auto checked = core::check_bundle_info(bad, "b", true);
    return checked ? std::string("good") : checked.error().what;
  };
  EXPECT_THAT(error("/bundle", 1), HasSubstr("\"bundle\" is 1"));
  EXPECT_THAT(error("/ring", "4"), HasSubstr("\"ring\" is \"4\""));
  EXPECT_THAT(error("/case", 4), HasSubstr("\"case\" is 4"));
  EXPECT_THAT(error("/case/threads", -1), HasSubstr("case: \"threads\" is -1"));
  EXPECT_THAT(error("/case/optimiser", {{"lr", "x"}}), HasSubstr("case.optimiser: \"lr\""));
  EXPECT_THAT(error("/case/dynamic", {{"low", 1}}), HasSubstr("\"high\" is missing"));
  EXPECT_THAT(error("/outputs/0/shape", "x"), HasSubstr("outputs[0]: \"shape\""));
  EXPECT_THAT(error("/flops", "many"), HasSubstr("\"flops\""));
  EXPECT_THAT(error("/graph", {{"ok", 5}}), HasSubstr("graph: \"ok\""));
}

// Fields keeps a reference: one of a temporary would be read after its end.
static_assert(std::is_constructible_v<Fields, const Json&, std::string>);
static_assert(!std::is_constructible_v<Fields, Json, std::string>);
static_assert(!std::is_constructible_v<Fields, const Json, std::string, std::string>);

}  // namespace
}  // namespace strata::outside
