// SPDX-License-Identifier: Apache-2.0
// What levels are said to lack of a captured network.
#include "plan/missing_support.hpp"

#include <gmock/gmock.h>

#include "compiler_graph.hpp"

namespace strata::plan {
namespace {
using ::testing::ElementsAre;

level::Level level_with(const std::string& id, std::vector<std::string> operations) {
  level::Level level;
  level.id = id;
  level.operations = std::move(operations);
  level.devices = {"cpu"};
  level.modes = {"infer"};
  return level;
}

graph::Graph recurrent() {
  compiler::GraphBuilder builder;
  const int x = builder.input("x", {2, 4});
  int y = builder.node("aten.relu.default", {{"self", compiler::GraphBuilder::ref(x)}}, {{2, 4}});
  for (const char* op : {"aten.lstm.input", "aten.gru.input", "aten.lstm.input"})
    y = builder.node(op, {{"self", compiler::GraphBuilder::ref(y)}}, {{2, 4}});
  builder.output("out0", y);
  return *graph::parse(builder.document().dump(), "the test's graph");
}

TEST(missing_support, names_each_operation_with_its_first_place_and_how_many_more) {
  const auto graph = recurrent();
  const auto found = missing_support(graph, {level_with("static", {"relu"})}, "cpu");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, "static");
  EXPECT_THAT(found[0].operations, ElementsAre("gru", "lstm"));
  EXPECT_EQ(found[0].words, "gru (layer0, net.py:1), lstm (layer0, net.py:1 and 1 more)");
}

TEST(missing_support, says_nothing_of_levels_that_have_all_call_all_of_aten_or_run_elsewhere) {
  const auto graph = recurrent();
  auto elsewhere = level_with("cudnn", {"relu"});
  elsewhere.devices = {"cuda"};
  EXPECT_TRUE(missing_support(graph,
                              {level_with("whole", {"gru", "lstm", "relu"}), level_with("aten", {"*"}),
                               level_with("module", {}), elsewhere},
                              "cpu")
                  .empty());
}

TEST(missing_support, names_inputs_that_a_generated_program_cannot_have) {
  auto graph = recurrent();
  graph.values[static_cast<std::size_t>(graph.inputs[0].value)].type = graph::Type::float64;
  auto generated = level_with("static", {"gru", "lstm", "relu"});
  generated.generate = {{"cpu", "onednn"}};
  const auto found = missing_support(graph, {level_with("onednn", {"gru", "lstm", "relu"}), generated}, "cpu");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].words,
            "'x' is float64 [2, 4]: inputs and outputs must be float32, int64, int32, uint8 or bool of at most 8 "
            "dimensions");
}

}  // namespace
}  // namespace strata::plan
