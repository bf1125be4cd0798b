// SPDX-License-Identifier: Apache-2.0
// A result as JSON and back: nothing is lost, and what is of another type is refused by its name.
#include "analysis/result_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "common/outside.hpp"
#include "unit/read_result.hpp"

namespace strata::analysis {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;
using Json = nlohmann::json;

Json example() {
  return outside::read_file(std::filesystem::path(STRATA_SOURCE_DIR) / "tests/report/example_run.json").value();
}

// Every value of `before` is in `after`; what only `after` has is what was unknown before.
void expect_kept(const Json& before, const Json& after, const std::string& place) {
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) {
      ASSERT_TRUE(after.contains(key)) << place << "/" << key;
      expect_kept(value, after[key], place + "/" + key);
    }
  } else if (before.is_array() && after.is_array()) {
    ASSERT_EQ(before.size(), after.size()) << place;
    for (std::size_t i = 0; i < before.size(); ++i) expect_kept(before[i], after[i], place + "/" + std::to_string(i));
  } else {
    EXPECT_EQ(before, after) << place;
  }
}

TEST(ResultJson, has_every_value_that_was_read) {
  const auto written = example();
  const auto again = to_json(result_from(written));
  expect_kept(written, again, "");
  EXPECT_EQ(to_json(result_from(again)), again);
}

TEST(ResultJson, has_null_for_what_is_unknown) {
  const auto row = to_json(RowResult());
  for (const char* name : {"environment", "end_to_end_ms", "ratio", "memory", "settings", "proof", "dynamic"})
    EXPECT_TRUE(row.at(name).is_null()) << name;
  EXPECT_EQ(row.at("blocks"), Json::array());
  EXPECT_EQ(row.at("variant"), "default");
  EXPECT_EQ(to_json(RunResult()).at("schema"), kResultSchema);
}

std::string refused(const Json& written) {
  const auto result = read_result(written, "a.json");
  return result ? "" : result.error().what;
}

std::string refused_row(const Json& row) {
  return refused({{"schema", kResultSchema}, {"cases", {{{"rows", Json::array({row})}}}}});
}

TEST(ResultJson, of_another_type_is_refused_by_its_name) {
  EXPECT_EQ(refused({{"schema", "strata.run/9"}}),
            "a.json: schema is \"strata.run/9\", this strata reads \"strata.run/1\"");
  EXPECT_THAT(refused(Json::array()), StartsWith("a.json: schema is \"\""));
  EXPECT_EQ(refused({{"schema", kResultSchema}, {"cases", 7}}), "\"a.json\": \"cases\" is 7; allowed is a list");
  EXPECT_EQ(refused_row(3), "\"a.json.cases[0]\": \"rows[0]\" is 3; allowed is an object");
  EXPECT_EQ(refused_row({{"level", 7}}), "\"a.json.cases[0].rows[0]\": \"level\" is 7; allowed is a text");
  EXPECT_EQ(refused_row({{"rank", -1}}),
            "\"a.json.cases[0].rows[0]\": \"rank\" is -1; allowed is a whole number from 0");
  EXPECT_EQ(refused_row({{"state", "asleep"}}),
            "\"a.json.cases[0].rows[0]\": \"state\" is \"asleep\"; allowed is one of its names");
  EXPECT_EQ(refused_row({{"ratio", {{"value", "x"}}}}),
            "\"a.json.cases[0].rows[0].ratio\": \"value\" is \"x\"; allowed is a number");
  EXPECT_EQ(refused_row({{"ratio", {{"verdict", "quicker"}}}}),
            "\"a.json.cases[0].rows[0].ratio\": \"verdict\" is \"quicker\"; allowed is one of its names");
  EXPECT_EQ(refused_row({{"peer", 1}, {"level", 7}}), "\"a.json.cases[0].rows[0]\": \"level\" is 7; allowed is a text")
      << "the first of several";
  EXPECT_EQ(refused_row({{"of_a_later_strata", 7}, {"ratio", {{"value", -0.5}}}}), "");
}

// The first entries of its lists: the others have the same members.
void shorten(Json& node) {
  if (node.is_array() && node.size() > 1) node.erase(node.begin() + 1, node.end());
  if (node.is_structured())
    for (auto& child : node) shorten(child);
}

// What the example is refused for with `other` in any of its places, by place.
std::map<std::string, std::string> refused_with(Json other) {
  auto result = example();
  shorten(result);
  std::map<std::string, std::string> refusals;
  const auto leaves = result.flatten();
  for (const auto& [leaf, unused] : leaves.items())
    for (auto place = Json::json_pointer(leaf); !place.empty(); place = place.parent_pointer()) {
      const auto [refusal, is_new] = refusals.try_emplace(place.to_string());
      if (!is_new) break;
      std::swap(result.at(place), other);
      refusal->second = refused(result);
      std::swap(result.at(place), other);
    }
  return refusals;
}

TEST(ResultJson, with_any_value_in_any_place_is_read_or_refused) {
  for (const Json& other : {Json(true), Json("x"), Json(-1), Json(1.5), Json::array(), Json::object()})
    for (const auto& [place, refusal] : refused_with(other))
      EXPECT_THAT(refusal, AnyOf("", StartsWith("\"a.json"), StartsWith("a.json: schema is "))) << place << other;
}

TEST(ResultJson, passes_over_what_a_bundle_has_of_another_type) {
  const auto model = model_facts({{"model", {{"name", 7}, {"kind", "test"}, {"data", {"a", nullptr, 7}}}}});
  EXPECT_EQ(model.name, "");
  EXPECT_EQ(model.kind, "test");
  EXPECT_THAT(model.data, ::testing::ElementsAre("a")) << "null and 7 are no texts";
  EXPECT_EQ(model_facts(nullptr).name, "");
}

TEST(ResultJson, with_null_in_any_place_is_read) {
  for (const auto& [place, refusal] : refused_with(nullptr))
    if (place != "/schema") {
      EXPECT_EQ(refusal, "") << place;
    }
}

}  // namespace
}  // namespace strata::analysis
