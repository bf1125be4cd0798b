// SPDX-License-Identifier: Apache-2.0
// The captured graph as calls of ATen: how arguments are spelt, what is given back, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generate/libtorch.hpp"
#include "graph/load.hpp"

namespace strata::generate {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

// One node over x [1, 2, 4, 4], with further arguments as JSON; a parameter w [2].
Result<std::string> written(const std::string& op, const std::string& arguments, const std::string& mode = "infer") {
  const std::string text =
      R"({"graph":1,"mode":")" + mode +
      R"(","values":[{"name":"x","dtype":"float32","shape":[1,2,4,4]},{"name":"class","dtype":"float32","shape":[2]},
{"name":"relu","dtype":"float32","shape":[1,2,4,4]},{"name":"out","dtype":"float32","shape":[1,2,4,4]}],
"inputs":[{"value":0,"name":"x"}],"parameters":[{"value":1,"name":"class"}],"buffers":[],"constants":[],
"nodes":[{"op":"aten.relu.default","name":"relu","args":{"self":{"value":0}},"outputs":[2],"module":"act","module_type":"ReLU","source":"net.py:3"},
{"op":")" +
      op + R"(","name":"node","args":{"self":{"value":2})" + (arguments.empty() ? "" : "," + arguments) +
      R"(},"outputs":[3],"module":"","module_type":"Net","source":"net.py:7"}],
"outputs":[{"name":"output","value":3}],"updates":[]})";
  const auto graph = graph::parse(text, "the test's graph");
  if (!graph) return tl::unexpected(graph.error());
  return libtorch_source(*graph, "net/infer");
}

TEST(GenerateLibtorch, spells_arguments_as_c_plus_plus_and_includes_what_it_calls) {
  const auto source = written("aten.clamp.default", R"("min":-0.5,"max":"inf")");
  ASSERT_TRUE(source) << source.error().what;
  EXPECT_THAT(*source,
              HasSubstr("at::Tensor out = op::clamp::call(relu, -0.5, std::numeric_limits<double>::infinity());"));
  EXPECT_THAT(*source, HasSubstr("#include <ATen/ops/clamp_ops.h>"));
  const auto pooled = written("aten.avg_pool2d.default",
                              R"("kernel_size":[1,1],"stride":[],"divisor_override":null,"ceil_mode":false)");
  ASSERT_TRUE(pooled) << pooled.error().what;
  EXPECT_THAT(*pooled, HasSubstr("op::avg_pool2d::call(relu, Ints{1, 1}, Ints{}, std::nullopt, false)"));
  const auto overloaded = written("aten.add.Tensor", R"("other":{"value":1},"alpha":1)");
  ASSERT_TRUE(overloaded) << overloaded.error().what;
  EXPECT_THAT(*overloaded, HasSubstr("op::add_Tensor::call(relu, class_, 1)"));
  const auto number = written("aten.add.Tensor", R"("other":2,"alpha":1)");
  ASSERT_TRUE(number) << number.error().what;
  EXPECT_THAT(*number, HasSubstr("op::add_Scalar::call(relu, 2, 1)"));
  const auto shifted = written("aten.bitwise_left_shift.Tensor_Scalar", R"("other":2)");
  ASSERT_TRUE(shifted) << shifted.error().what;
  EXPECT_THAT(*shifted, HasSubstr("op::bitwise_left_shift_Tensor_Scalar::call(relu, 2)"));
  const auto viewed = written("aten.view.default", R"("size":[1,2,4,4])");
  ASSERT_TRUE(viewed) << viewed.error().what;
  EXPECT_THAT(*viewed, HasSubstr("op::reshape::call(relu, Ints{1, 2, 4, 4})"));
}

TEST(GenerateLibtorch, names_that_are_code_stay_in_comments_and_literals) {
  // what torch.export itself refuses, a file may hold
  const std::string name = "a\"\n#error hit\r*/ \\";
  auto graph = graph::parse(R"({"graph":1,"mode":"infer","values":[{"name":"x","dtype":"float32","shape":[2]},
{"name":"w","dtype":"float32","shape":[2]},{"name":"out","dtype":"float32","shape":[2]}],
"inputs":[{"value":0,"name":"x"}],"parameters":[{"value":1,"name":"w"}],"buffers":[],"constants":[],
"nodes":[{"op":"aten.relu.default","name":"relu","args":{"self":{"value":0}},"outputs":[2],"module":"act","module_type":"ReLU","source":"net.py:3"}],
"outputs":[{"name":"output","value":2}],"updates":[]})",
                            "the test's graph");
  ASSERT_TRUE(graph) << graph.error().what;
  for (auto& value : graph->values) value.name = name;
  graph->inputs[0].name = graph->parameters[0].name = graph->outputs[0].name = name;
  graph->nodes[0].module = graph->nodes[0].module_type = graph->nodes[0].source = name;
  const auto source = libtorch_source(*graph, name);
  ASSERT_TRUE(source) << source.error().what;
  EXPECT_THAT(*source, Not(HasSubstr("\n#error")));
  EXPECT_THAT(*source, Not(HasSubstr("\r")));
  EXPECT_THAT(*source, HasSubstr(R"({"a\"\012#error hit\015*/ \\", at::ScalarType::Float, {2}})"));
}

TEST(GenerateLibtorch, says_where_a_call_comes_from_and_gives_memory_back_after_the_last_reader) {
  const auto source = written("aten.neg.default", "");
  ASSERT_TRUE(source) << source.error().what;
  EXPECT_THAT(*source, HasSubstr("// act (ReLU), net.py:3 -> [1, 2, 4, 4]"));
  EXPECT_THAT(*source, HasSubstr("    relu.reset();\n"));
  EXPECT_THAT(*source, Not(HasSubstr("x.reset()")));    // the caller's
  EXPECT_THAT(*source, Not(HasSubstr("out.reset()")));  // a result
}

TEST(GenerateLibtorch, switches_dropout_in_a_network_that_trains_and_only_there) {
  const auto trains = written("aten.dropout.default", R"("p":0.25,"train":true)", "train");
  ASSERT_TRUE(trains) << trains.error().what;
  EXPECT_THAT(*trains, HasSubstr("op::dropout::call(relu, dropout ? 0.25 : 0.0, training)"));
  const auto infers = written("aten.dropout.default", R"("p":0.25,"train":false)");
  ASSERT_TRUE(infers) << infers.error().what;
  EXPECT_THAT(*infers, HasSubstr("op::dropout::call(relu, 0.25, false)"));
}

TEST(GenerateLibtorch, refuses_what_is_not_atens_with_its_place) {
  const auto source = written("torchvision.nms.default", "");
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().what, HasSubstr("net.py:7"));
  EXPECT_THAT(source.error().what, HasSubstr("torchvision.nms.default is no operation of ATen"));
}

}  // namespace
}  // namespace strata::generate
