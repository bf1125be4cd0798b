// SPDX-License-Identifier: Apache-2.0
// The structure of training graphs: what is added, what is left out, what is refused. That the gradients are right is
// tests/levels/test_backward.py's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/backward/backward.hpp"
#include "graph/check.hpp"
#include "graph/load.hpp"
#include "graph/write.hpp"

namespace strata::graph {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x [2, 3] -> linear with weight [4, 3] -> relu; relu + relu -> the scores. `changed` is the operation of the ReLU.
Graph network(const std::string& mode = "train", const std::string& changed = "relu", const std::string& input = "x") {
  nlohmann::json all = nlohmann::json::parse(R"({"graph":1,"values":[
    {"name":"x","dtype":"float32","shape":[2,3]},{"name":"w","dtype":"float32","shape":[4,3]},
    {"name":"y","dtype":"float32","shape":[2,4]},{"name":"z","dtype":"float32","shape":[2,4]},{"name":"s","dtype":"float32","shape":[2,4]}],
    "parameters":[{"name":"fc.weight","value":1}],"buffers":[],"constants":[],"nodes":[
    {"op":"aten.linear.default","name":"linear","args":{"input":{"value":0},"weight":{"value":1},"bias":null},"outputs":[2],"module":"fc","module_type":"Linear","source":"net.py:1"},
    {"op":"","name":"act","args":{"self":{"value":2}},"outputs":[3],"module":"act","module_type":"ReLU","source":"net.py:2"},
    {"op":"aten.add.Tensor","name":"add","args":{"self":{"value":3},"other":{"value":3},"alpha":1},"outputs":[4],"module":"","module_type":"Net","source":"net.py:3"}],
    "outputs":[{"name":"output","value":4}],"updates":[]})");
  all["mode"] = mode;
  all["inputs"] = {{{"name", input}, {"value", 0}}};
  all["nodes"][1]["op"] = "aten." + changed + ".default";
  return *parse(all.dump(), "graph.json");
}

std::vector<std::string> operations(const Graph& graph, std::size_t from) {
  std::vector<std::string> names;
  for (std::size_t n = from; n < graph.nodes.size(); ++n) names.push_back(graph.nodes[n].operation());
  return names;
}

TEST(training_graph, has_the_loss_and_one_gradient_a_parameter) {
  const auto training = differentiate(network(), Loss::cross_entropy);
  ASSERT_TRUE(training) << training.error().what;
  EXPECT_EQ(training->forward_nodes, 3U);
  EXPECT_EQ(training->loss_nodes, 5U);
  // the sum has its one operand twice: two equal parts are added
  EXPECT_THAT(operations(training->graph, training->loss_nodes),
              ElementsAre("ones_like", "nll_loss_backward", "_log_softmax_backward_data", "add", "threshold_backward",
                          "t", "mm"));
  ASSERT_EQ(training->gradients.size(), 1U);
  EXPECT_EQ(training->gradients[0].name, "fc.weight");
  EXPECT_EQ(training->graph.value(training->gradients[0].value).shape, (Shape{4, 3}));
  EXPECT_EQ(training->graph.inputs.back().name, "labels");
  EXPECT_EQ(training->graph.outputs[0].name, "loss");
  EXPECT_EQ(training->graph.outputs[1].name, "grad:fc.weight");
}

TEST(training_graph, passes_the_check_of_shapes_and_counts_twice_the_forward_flops_but_for_the_input) {
  const auto training = differentiate(network(), Loss::nll);
  ASSERT_TRUE(training) << training.error().what;
  const auto checked = check(training->graph);
  ASSERT_TRUE(checked) << checked.error().what;
  EXPECT_TRUE(checked->unknown.empty());
  EXPECT_EQ(checked->total.flops, 2 * 2 * 2 * 3 * 4);
}

TEST(training_graph, backward_nodes_carry_the_place_of_their_forward_node) {
  const auto training = differentiate(network(), Loss::nll);
  ASSERT_TRUE(training) << training.error().what;
  EXPECT_EQ(training->graph.nodes.back().module, "fc");
  EXPECT_EQ(training->graph.nodes.back().source, "net.py:1");
}

TEST(training_graph, survives_being_written_and_read) {
  const auto training = differentiate(network(), Loss::nll);
  ASSERT_TRUE(training) << training.error().what;
  const auto again = parse(to_text(training->graph), "again");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(to_text(*again), to_text(training->graph));
}

TEST(training_graph, names_an_operation_without_a_rule_and_its_place) {
  const auto training = differentiate(network("train", "erf"), Loss::nll);
  ASSERT_FALSE(training);
  EXPECT_THAT(training.error().what, HasSubstr("node 'act' (erf) in act (ReLU), net.py:2: no backward rule"));
  EXPECT_EQ(training.error().exit, Exit::environment);
}

TEST(training_graph, refuses_what_cannot_be_trained) {
  EXPECT_THAT(differentiate(network("infer"), Loss::nll).error().what, HasSubstr("mode infer"));
  EXPECT_THAT(differentiate(network("train", "relu", "labels"), Loss::nll).error().what, HasSubstr("'labels'"));
  auto frozen = network();
  frozen.parameters[0].frozen = true;
  EXPECT_THAT(differentiate(frozen, Loss::nll).error().what, HasSubstr("no trained parameter"));
  EXPECT_THAT(loss_named("hinge").error().what, HasSubstr("cross_entropy, nll"));
}

TEST(evaluation_graph, has_given_statistics_and_no_dropout_and_updates_nothing) {
  const auto train = parse(R"({"graph":1,"mode":"train","values":[
    {"name":"x","dtype":"float32","shape":[2,3]},{"name":"m","dtype":"float32","shape":[3]},{"name":"v","dtype":"float32","shape":[3]},
    {"name":"y","dtype":"float32","shape":[2,3]},{"name":"m2","dtype":"float32","shape":[3]},{"name":"v2","dtype":"float32","shape":[3]},
    {"name":"n","dtype":"int64","shape":[]},{"name":"n2","dtype":"int64","shape":[]},{"name":"d","dtype":"float32","shape":[2,3]}],
    "inputs":[{"name":"x","value":0}],"parameters":[],"buffers":[{"name":"mean","value":1},{"name":"var","value":2},{"name":"count","value":6}],"constants":[],"nodes":[
    {"op":"aten.add.Tensor","name":"add","args":{"self":{"value":6},"other":1,"alpha":1},"outputs":[7],"module":"","module_type":"","source":""},
    {"op":"aten.batch_norm.default","name":"bn","args":{"input":{"value":0},"weight":null,"bias":null,"running_mean":{"value":1},"running_var":{"value":2},"training":true,"momentum":0.1,"eps":1e-5,"cudnn_enabled":false},"outputs":[3,4,5],"module":"","module_type":"","source":""},
    {"op":"aten.dropout.default","name":"drop","args":{"input":{"value":3},"p":0.5,"train":true},"outputs":[8],"module":"","module_type":"","source":""}],
    "outputs":[{"name":"output","value":8}],"updates":[{"buffer":"mean","value":4},{"buffer":"var","value":5},{"buffer":"count","value":7}]})",
                           "graph.json");
  ASSERT_TRUE(train) << train.error().what;
  const auto graph = evaluation_of(*train);
  EXPECT_EQ(graph.mode, Mode::infer);
  EXPECT_TRUE(graph.updates.empty());
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[0].outputs.size(), 1U);
  EXPECT_FALSE(graph.nodes[0].flag("training"));
  EXPECT_FALSE(graph.nodes[1].flag("train"));
  EXPECT_TRUE(check(graph));
}

}  // namespace
}  // namespace strata::graph
