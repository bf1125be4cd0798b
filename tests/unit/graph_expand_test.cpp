// SPDX-License-Identifier: Apache-2.0
// Operations that are written as others: what they become, and what stays as it is. That they compute the same is
// proven with levels (tests/levels, typed_operations).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/backward/backward.hpp"
#include "graph/expand.hpp"
#include "unit/compiler_graph.hpp"

namespace strata::graph {
namespace {
using compiler::GraphBuilder;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json ref(int value) {
  return {{"value", value}};
}

std::vector<std::string> operations_of(const Graph& graph) {
  std::vector<std::string> all;
  for (const auto& node : graph.nodes) all.push_back(node.operation());
  return all;
}

Graph product(bool trains, bool by_weight, double alpha = 1) {
  GraphBuilder b(trains);
  const int x = b.input("x", {3, 4}), bias = b.parameter("bias", {5});
  const int other = by_weight ? b.parameter("weight", {4, 5}) : b.input("y", {4, 5});
  b.output("out", b.node("aten.addmm.default",
                         {{"self", ref(bias)}, {"mat1", ref(x)}, {"mat2", ref(other)}, {"beta", 1}, {"alpha", alpha}},
                         {{3, 5}}));
  return *parse(b.document().dump(), "the test's graph");
}

TEST(Expand, a_product_with_a_sum_is_a_linear_layer_where_the_matrix_is_a_weight_that_stays) {
  const auto linear = *expanded(product(false, true));
  EXPECT_THAT(operations_of(linear), ElementsAre("t", "linear"));
  EXPECT_EQ(linear.nodes.back().name, product(false, true).nodes.back().name) << "the last takes its name";
  EXPECT_THAT(linear.nodes.front().where(), HasSubstr("net.py:1"));
  EXPECT_THAT(operations_of(*expanded(product(false, false))), ElementsAre("mm", "add"));
  EXPECT_THAT(operations_of(*expanded(product(true, true))), ElementsAre("mm", "add")) << "it is trained";
}

TEST(Expand, forms_that_are_not_known_and_all_other_operations_stay) {
  EXPECT_THAT(operations_of(*expanded(product(false, true, 0.5))), ElementsAre("addmm"));
  GraphBuilder b;
  b.output("out", b.node("aten.relu.default", {{"self", ref(b.input("x", {2}))}}, {{2}}));
  EXPECT_THAT(operations_of(*expanded(*parse(b.document().dump(), "it"))), ElementsAre("relu"));
}

// The mean square of x w and y, as in nn.MSELoss.
Graph squares(const json& reduction = 1) {
  GraphBuilder b(true);
  const int x = b.input("x", {2, 3}), y = b.input("y", {2, 4}), weight = b.parameter("weight", {4, 3});
  const int out =
      b.node("aten.linear.default", {{"input", ref(x)}, {"weight", ref(weight)}, {"bias", nullptr}}, {{2, 4}});
  const std::vector<int> shape = reduction == 0 ? std::vector<int>{2, 4} : std::vector<int>{};
  b.output("loss", b.node("aten.mse_loss.default", {{"self", ref(out)}, {"target", ref(y)}, {"reduction", reduction}},
                          std::vector<std::vector<int>>{shape}));
  return *parse(b.document().dump(), "the test's graph");
}

TEST(Expand, a_loss_is_the_calculations_of_which_it_consists) {
  EXPECT_THAT(operations_of(*expanded(squares())), ElementsAre("linear", "sub", "mul", "mean"));
  EXPECT_THAT(operations_of(*expanded(squares(2))), ElementsAre("linear", "sub", "mul", "sum"));
  EXPECT_THAT(operations_of(*expanded(squares(0))), ElementsAre("linear", "sub", "mul", "view"));
}

TEST(Expand, a_network_that_gives_its_loss_is_trained_with_it_and_reads_no_labels) {
  const auto network = squares();
  EXPECT_EQ(loss_of(network, "mse"), Loss::output);
  const auto training = differentiate(network, Loss::output);
  ASSERT_TRUE(training) << training.error().what;
  EXPECT_EQ(training->labels, -1);
  EXPECT_EQ(training->forward_nodes, training->loss_nodes) << "the loss is part of the forward pass";
  ASSERT_EQ(training->graph.inputs.size(), 2U);
  EXPECT_EQ(training->graph.outputs.at(0).name, "loss");
  EXPECT_EQ(training->graph.outputs.at(1).name, "grad:weight");
  EXPECT_THAT(differentiate(squares(0), Loss::output).error().what, HasSubstr("a loss is one number"));
  EXPECT_THAT(loss_of(squares(0), "mse").error().what, HasSubstr("cross_entropy, nll"));
}

TEST(Expand, attention_that_drops_out_is_in_parts_in_training_and_whole_where_it_is_evaluated) {
  GraphBuilder b(true);
  const int x = b.input("x", {2, 2, 3, 4}), weight = b.parameter("weight", {2, 2, 3, 4});
  b.output("out", b.node("aten.scaled_dot_product_attention.default",
                         {{"query", ref(x)},
                          {"key", ref(weight)},
                          {"value", ref(x)},
                          {"attn_mask", nullptr},
                          {"dropout_p", 0.25},
                          {"is_causal", false},
                          {"scale", nullptr},
                          {"enable_gqa", false}},
                         {{2, 2, 3, 4}}));
  const auto graph = *parse(b.document().dump(), "it");
  EXPECT_THAT(operations_of(*expanded(graph)),
              ElementsAre("mul", "transpose", "matmul", "_softmax", "dropout", "matmul"));
  const auto evaluated = *expanded(evaluation_of(graph));
  ASSERT_THAT(operations_of(evaluated), ElementsAre("scaled_dot_product_attention"));
  EXPECT_EQ(evaluated.nodes[0].number("dropout_p"), 0);
}

TEST(Expand, a_norm_of_groups_is_one_of_rows_with_scale_and_shift_by_channel) {
  GraphBuilder b;
  const int x = b.input("x", {2, 6, 3, 3}), weight = b.parameter("weight", {6}), bias = b.parameter("bias", {6});
  b.output("out", b.node("aten.group_norm.default",
                         {{"input", ref(x)},
                          {"num_groups", 3},
                          {"weight", ref(weight)},
                          {"bias", ref(bias)},
                          {"eps", 1e-5},
                          {"cudnn_enabled", true}},
                         {{2, 6, 3, 3}}));
  const auto graph = *expanded(*parse(b.document().dump(), "it"));
  EXPECT_THAT(operations_of(graph), ElementsAre("view", "layer_norm", "view", "view", "mul", "view", "add"));
  EXPECT_EQ(graph.value(graph.nodes[1].outputs[0]).shape, (Shape{6, 18}));
}

}  // namespace
}  // namespace strata::graph
