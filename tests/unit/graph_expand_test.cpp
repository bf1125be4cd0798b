// SPDX-License-Identifier: Apache-2.0
// Operations that are written as others: what they become, and what stays as it is. That they compute the same is
// proven with levels (tests/levels, typed_operations).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/backward/backward.hpp"
#include "graph/check.hpp"
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

// Two layers in two directions, with dropout between them; `parameters` of each.
Graph lstm(bool trains, int parameters = 4) {
  GraphBuilder b(trains);
  const int x = b.input("x", {3, 7, 4}), states = b.input("states", {4, 3, 5}), cells = b.input("cells", {4, 3, 5});
  std::vector<int> params;
  for (int i = 0; i < 4 * parameters; ++i) {
    const int columns = i % parameters == 1 ? 5 : i < 2 * parameters ? 4 : 10;
    const std::vector<int> matrix{20, columns}, bias{20}, projection{3, 5};
    params.push_back(
        b.parameter("w" + std::to_string(i), i % parameters < 2 ? matrix : (i % parameters < 4 ? bias : projection)));
  }
  const int first = b.node("aten.lstm.input",
                           {{"input", ref(x)},
                            {"hx", {{"values", {states, cells}}}},
                            {"params", {{"values", params}}},
                            {"has_biases", true},
                            {"num_layers", 2},
                            {"dropout", 0.5},
                            {"train", trains},
                            {"bidirectional", true},
                            {"batch_first", true}},
                           {{3, 7, 10}, {4, 3, 5}, {4, 3, 5}});
  b.output("out", first);
  return *parse(b.document().dump(), "it");
}

TEST(Expand, an_lstm_is_its_layers_in_each_direction_joined_with_steps_first) {
  const auto graph = *expanded(lstm(false));
  EXPECT_THAT(operations_of(graph),
              ElementsAre("transpose", "select", "select", "mkldnn_rnn_layer", "select", "select", "mkldnn_rnn_layer",
                          "cat", "select", "select", "mkldnn_rnn_layer", "select", "select", "mkldnn_rnn_layer", "cat",
                          "transpose", "stack", "stack"));
  EXPECT_FALSE(graph.nodes[3].flag("reverse"));
  const auto& last = graph.nodes[13];
  EXPECT_TRUE(last.flag("reverse"));
  EXPECT_EQ(last.name, "lstm_0.layer1_reverse");
  EXPECT_EQ(graph.value(last.tensor("weight3")).name, "w15");
  EXPECT_EQ(last.integer("mode"), 2);
  EXPECT_EQ(graph.value(last.outputs[0]).shape, (Shape{7, 3, 5}));
  EXPECT_TRUE(check(graph)) << check(graph).error().what;
}

TEST(Expand, an_lstm_in_training_drops_out_between_its_layers) {
  const auto found = operations_of(*expanded(lstm(true)));
  EXPECT_EQ(std::count(found.begin(), found.end(), "dropout"), 1);
  EXPECT_EQ(found[8], "dropout") << "behind the first layer";
  const auto evaluated = operations_of(*expanded(evaluation_of(lstm(true))));
  EXPECT_EQ(std::count(evaluated.begin(), evaluated.end(), "dropout"), 0);
}

TEST(Expand, an_lstm_with_projections_stays_as_it_is) {
  EXPECT_THAT(operations_of(*expanded(lstm(false, 5))), ElementsAre("lstm"));
}

TEST(Expand, a_cell_is_a_layer_of_one_step) {
  GraphBuilder b;
  const int x = b.input("x", {2, 4}), state = b.input("state", {2, 3});
  b.output("out", b.node("aten.gru_cell.default",
                         {{"input", ref(x)},
                          {"hx", ref(state)},
                          {"w_ih", ref(b.parameter("w_ih", {9, 4}))},
                          {"w_hh", ref(b.parameter("w_hh", {9, 3}))},
                          {"b_ih", nullptr},
                          {"b_hh", nullptr}},
                         {{2, 3}}));
  const auto graph = *expanded(*parse(b.document().dump(), "it"));
  ASSERT_THAT(operations_of(graph), ElementsAre("view", "mkldnn_rnn_layer"));
  EXPECT_EQ(graph.outputs[0].value, graph.nodes[1].outputs[1]) << "its last state";
  EXPECT_EQ(graph.nodes[1].integer("mode"), 3);
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

Graph of_one(const std::string& op, const json& args, std::vector<std::vector<int>> shapes, std::size_t outputs,
             bool trains = false) {
  GraphBuilder b(trains);
  b.input("x", {2, 4, 6});
  const int first = b.node(op, args, std::move(shapes));
  for (std::size_t i = 0; i < outputs; ++i) b.output("out" + std::to_string(i), first + static_cast<int>(i));
  return *parse(b.document().dump(), "it");
}

TEST(Expand, a_maximum_along_an_axis_looks_for_places_only_where_they_are_read_or_take_a_gradient) {
  const json args{{"self", ref(0)}, {"dim", -1}, {"keepdim", false}};
  const auto values_alone = *expanded(of_one("aten.max.dim", args, {{2, 4}, {2, 4}}, 1));
  EXPECT_THAT(operations_of(values_alone), ElementsAre("amax"));
  EXPECT_EQ(values_alone.values.size(), 2) << "the places are no value any more";
  EXPECT_EQ(values_alone.value(values_alone.outputs[0].value).shape, (Shape{2, 4}));
  EXPECT_THAT(operations_of(*expanded(of_one("aten.min.dim", args, {{2, 4}, {2, 4}}, 1, true))),
              ElementsAre("argmin", "gather", "view", "view"));
}

TEST(Expand, an_edge_is_joined_of_slices_and_one_that_is_too_wide_stays) {
  const auto padded = [](int before, const char* mode, int extent) {
    return operations_of(*expanded(of_one("aten.pad.default",
                                          {{"self", ref(0)}, {"pad", {before, 0}}, {"mode", mode}, {"value", nullptr}},
                                          {{2, 4, extent}}, 1)));
  };
  EXPECT_THAT(padded(2, "reflect", 8), ElementsAre("slice", "slice", "cat", "view"));
  EXPECT_THAT(padded(2, "circular", 8), ElementsAre("slice", "cat", "view"));
  EXPECT_THAT(padded(70, "replicate", 76), ElementsAre("pad"));
  EXPECT_THAT(padded(-2, "constant", 4), ElementsAre("slice", "pad"));
}

TEST(Expand, what_is_evaluated_may_lack_the_statistics_that_training_gave) {
  GraphBuilder b(true);
  const int normal = b.norm(b.input("x", {2, 4, 3, 3}));
  b.output("out", b.node("aten.glu.default", {{"self", ref(normal)}, {"dim", 1}}, {{2, 2, 3, 3}}));
  const auto evaluated = evaluation_of(*parse(b.document().dump(), "it"));
  ASSERT_EQ(evaluated.nodes[0].outputs.size(), 1);
  const auto graph = expanded(evaluated);
  ASSERT_TRUE(graph) << graph.error().what;
  EXPECT_THAT(operations_of(*graph), ElementsAre("batch_norm", "slice", "sigmoid", "slice", "mul"));
}

TEST(Expand, a_second_time_nothing_changes) {
  for (const auto& graph :
       {of_one("aten.max.dim", {{"self", ref(0)}, {"dim", 1}, {"keepdim", true}}, {{2, 1, 6}, {2, 1, 6}}, 1, true),
        of_one("aten.adaptive_max_pool1d.default", {{"self", ref(0)}, {"output_size", {4}}}, {{2, 4, 4}, {2, 4, 4}}, 1),
        of_one("aten.upsample_linear1d.vec",
               {{"input", ref(0)}, {"output_size", {9}}, {"align_corners", false}, {"scale_factors", nullptr}},
               {{2, 4, 9}}, 1)}) {
    const auto once = *expanded(graph);
    EXPECT_NE(operations_of(once), operations_of(graph));
    EXPECT_EQ(operations_of(*expanded(once)), operations_of(once));
  }
}

}  // namespace
}  // namespace strata::graph
