// SPDX-License-Identifier: Apache-2.0
// Which models a level is said to run.
#include "plan/supported.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::plan {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

RecordedOperations record() {
  return {"2.15.0",
          "0.29.2",
          {{"small", {{"infer", {"conv2d", "relu"}}, {"train", {"conv2d", "dropout", "relu"}}}},
           {"large", {{"infer", {"conv2d", "einsum", "roll"}}}}}};
}

level::Level with_operations() {
  level::Level level;
  level.modes = {"infer", "train"};
  level.operations = {"conv2d", "relu"};
  level.prepare = {"{python}"};
  return level;
}

TEST(supported, a_level_runs_what_it_has_all_operations_of) {
  EXPECT_EQ(supports(with_operations(), "small", "infer", record()).support, Support::yes);
  const auto lacking = supports(with_operations(), "large", "infer", record());
  EXPECT_EQ(lacking.support, Support::no);
  EXPECT_THAT(lacking.lacks, ElementsAre("einsum", "roll"));
  EXPECT_EQ(lacking.why, "lacks einsum, roll");
  EXPECT_EQ(supports(with_operations(), "small", "train", record()).why, "lacks dropout");
}

TEST(supported, training_needs_a_backward_rule_too) {
  auto level = with_operations();
  level.operations = {"conv2d", "bernoulli", "dropout", "relu"};
  auto recorded = record();
  EXPECT_EQ(supports(level, "small", "train", recorded).support, Support::yes);
  recorded.models["small"]["train"].push_back("bernoulli");
  const auto lacking = supports(level, "small", "train", recorded);
  EXPECT_EQ(lacking.support, Support::no);
  EXPECT_EQ(lacking.why, "no backward rule for bernoulli");
}

TEST(supported, what_calls_all_of_aten_runs_and_trains_each_recorded_graph_of_it) {
  auto level = with_operations();
  level.operations = {"*"};
  auto recorded = record();
  recorded.models["small"]["train"].push_back("bernoulli");  // without a rule of strata's
  EXPECT_EQ(supports(level, "small", "train", recorded).support, Support::yes);
  EXPECT_EQ(supports(level, "large", "infer", recorded).support, Support::yes);
  EXPECT_EQ(supports(level, "another", "infer", recorded).support, Support::unknown);
  recorded.models["large"]["infer"].push_back("torchvision.roi_align");
  EXPECT_EQ(supports(level, "large", "infer", recorded).why, "lacks torchvision.roi_align");
}

TEST(supported, says_so_where_no_graph_is_recorded) {
  const auto unknown = supports(with_operations(), "large", "train", record());
  EXPECT_EQ(unknown.support, Support::unknown);
  EXPECT_EQ(unknown.why, "its train graph is not recorded");
  EXPECT_EQ(supports(with_operations(), "another", "infer", record()).support, Support::unknown);
}

TEST(supported, judges_other_levels_by_what_level_json_says) {
  level::Level eager;
  eager.modes = {"infer"};
  EXPECT_EQ(supports(eager, "another", "infer", record()).support, Support::yes);
  EXPECT_EQ(supports(eager, "another", "train", record()).why, "no mode train");
  auto exported = eager;
  exported.prepare = {"{python}"};
  EXPECT_EQ(supports(exported, "another", "infer", record()).support, Support::unknown);
  auto written = eager;
  written.models = {"small"};
  EXPECT_EQ(supports(written, "small", "infer", record()).support, Support::yes);
  EXPECT_EQ(supports(written, "large", "infer", record()).why, "runs hand-written models only");
  auto harness = eager;
  harness.harness = true;
  EXPECT_EQ(supports(harness, "small", "infer", record()).support, Support::no);
}

TEST(supported, reads_the_record_that_is_shipped) {
  const auto record = recorded_operations(STRATA_SOURCE_DIR);
  ASSERT_TRUE(record) << record.error().what;
  ASSERT_TRUE(record->models.contains("resnet18"));
  EXPECT_THAT(
      record->models.at("resnet18").at("infer"),
      ElementsAre("adaptive_avg_pool2d", "add", "batch_norm", "conv2d", "flatten", "linear", "max_pool2d", "relu"));
  EXPECT_GE(record->models.size(), 80u);
  EXPECT_FALSE(recorded_operations("/nowhere"));
}

TEST(supported, a_level_with_all_that_is_recorded_runs_every_model) {
  const auto record = recorded_operations(STRATA_SOURCE_DIR);
  ASSERT_TRUE(record);
  auto level = with_operations();
  for (const auto& [model, modes] : record->models)
    for (const auto& [mode, operations] : modes)
      level.operations.insert(level.operations.end(), operations.begin(), operations.end());
  for (const auto& [model, modes] : record->models)
    EXPECT_THAT(supports(level, model, "infer", *record).lacks, IsEmpty()) << model;
}

}  // namespace
}  // namespace strata::plan
