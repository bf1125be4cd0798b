// SPDX-License-Identifier: Apache-2.0
#include "analysis/operation_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/operation_layers.hpp"

namespace strata::analysis {
namespace {

using testing::ElementsAre;

store::ProfiledOperation operation(std::string name, std::optional<std::string> layer, double ms, double gap_ms = 0) {
  store::ProfiledOperation made;
  made.operation = std::move(name);
  made.layer = std::move(layer);
  made.ms = ms;
  made.gap_ms = gap_ms;
  return made;
}

store::OperationProfile profile(std::vector<store::ProfiledOperation> operations, double after_ms = 0) {
  store::OperationProfile made;
  made.operations = std::move(operations);
  made.after_ms = after_ms;
  return made;
}

TEST(OperationGroups, names_of_several_libraries_are_of_one_kind) {
  const auto kind = [](const char* name) { return kind_of(operation(name, "", 1)); };
  for (const auto* name : {"conv2d", "convolution", "convolution_backward", "mkldnn_convolution", "deconvolution"})
    EXPECT_EQ(kind(name), OperationKind::convolution) << name;
  for (const auto* name : {"linear", "addmm", "mm", "bmm", "inner_product", "scaled_dot_product_attention", "lstm"})
    EXPECT_EQ(kind(name), OperationKind::product) << name;
  for (const auto* name : {"batch_norm", "layer_normalization", "softmax", "native_batch_norm_backward"})
    EXPECT_EQ(kind(name), OperationKind::normalisation) << name;
  for (const auto* name : {"relu_", "add_", "gelu", "eltwise", "binary", "mul"})
    EXPECT_EQ(kind(name), OperationKind::element_wise) << name;
  for (const auto* name : {"max_pool2d", "adaptive_avg_pool2d", "mean", "sum"})
    EXPECT_EQ(kind(name), OperationKind::pooling) << name;
  EXPECT_EQ(kind("_foreach_add_"), OperationKind::update);
  EXPECT_EQ(kind("embedding"), OperationKind::other);
  auto moved = operation("conv2d", "", 1);
  moved.moves_only = true;
  EXPECT_EQ(kind_of(moved), OperationKind::move);
}

TEST(OperationGroups, what_lies_between_operations_is_before_between_and_after_them) {
  const auto sums = ms_by_kind(profile({operation("conv2d", "a", 3, 0.5), operation("relu", "b", 1, 0.25)}, 2));
  EXPECT_DOUBLE_EQ(sums.at(OperationKind::between), 2.75);
  EXPECT_DOUBLE_EQ(sums.at(OperationKind::convolution), 3);
  EXPECT_FALSE(sums.contains(OperationKind::product));
}

TEST(OperationGroups, layers_are_cut_until_there_are_few_enough_parts) {
  const auto eager = profile({operation("conv2d", "stem", 1), operation("conv2d", "layer1.0.conv1", 1),
                              operation("relu", "layer1.0.relu", 1), operation("conv2d", "layer1.1.conv1", 1),
                              operation("add", "layer1.0", 1), operation("linear", "fc", 1)});
  const auto other = profile({operation("convolution", "layer2.0.conv1", 1), operation("update", std::nullopt, 1)});
  const store::OperationProfile* both[] = {&eager, &other};
  EXPECT_THAT(parts_of(both, 4), ElementsAre("stem", "layer1", "fc", "layer2"));
  EXPECT_THAT(parts_of(both, 6), ElementsAre("stem", "layer1.0", "layer1.1", "fc", "layer2.0"));
  EXPECT_THAT(parts_of(both, 1), ElementsAre("stem", "layer1", "fc", "layer2")) << "one name is the least";
  const auto parts = parts_of(both, 6);
  EXPECT_EQ(part_of("layer1.0.conv1", parts), "layer1.0");
  EXPECT_EQ(part_of("layer1.0", parts), "layer1.0");
  EXPECT_EQ(part_of("layer10.0", parts), "");
}

TEST(OperationGroups, an_operation_of_the_network_itself_is_a_part_of_its_own) {
  const auto one = profile({operation("flatten", "", 1), operation("linear", "fc", 1)});
  const store::OperationProfile* only[] = {&one};
  const auto parts = parts_of(only, 10);
  EXPECT_THAT(parts, ElementsAre("", "fc"));
  EXPECT_EQ(part_of("", parts), "");
  EXPECT_EQ(part_of("fc", parts), "fc");
}

TEST(OperationGroups, calls_of_one_name_and_kernel_are_one_line_in_the_order_of_the_first) {
  const auto groups =
      groups_of(profile({operation("relu", "a", 1), operation("conv2d", "b", 5), operation("relu", "c", 2, 0.5)}));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[1].name, "conv2d");
  EXPECT_EQ(groups[0].calls, 2);
  EXPECT_DOUBLE_EQ(groups[0].ms, 3);
  EXPECT_DOUBLE_EQ(groups[0].gap_ms, 0.5);
  EXPECT_EQ(groups[0].longest_layer, "c");
}

std::vector<std::string> names(const store::OperationProfile& of, GroupBy by) {
  std::vector<std::string> all;
  for (const auto& group : groups_of(of, by)) all.push_back(group.name);
  return all;
}

TEST(OperationGroups, calls_are_grouped_by_what_is_asked_for) {
  auto one = profile({operation("conv2d", "stem.conv", 5), operation("relu", "stem.act", 1), operation("relu", "", 2),
                      operation("odd", std::nullopt, 1), operation("relu", "", 2)});
  one.operations[1].shapes = {{1, 64}, {}};
  EXPECT_THAT(names(one, GroupBy::layer), ElementsAre("stem.conv", "stem.act", kTheNetworkItself, kNoKnownPart));
  EXPECT_THAT(names(one, GroupBy::kind), ElementsAre("convolutions", "element-wise", "other"));
  EXPECT_THAT(names(one, GroupBy::shape), ElementsAre("conv2d", "relu (1x64, scalar)", "relu", "odd"));
  EXPECT_THAT(names(one, GroupBy::call), ElementsAre("conv2d", "relu (1x64, scalar)", "relu", "odd", "relu"));
  EXPECT_THAT(names(one, GroupBy::part), ElementsAre("stem.conv", "stem.act", kTheNetworkItself, kNoKnownPart));
}

TEST(OperationGroups, a_rate_is_known_where_the_work_of_every_product_is) {
  auto one = profile({operation("conv2d", "a", 2), operation("relu", "a", 2), operation("linear", "b", 1)});
  one.operations[0].flops = 8e9;
  one.operations[0].bytes = 4e6;
  const auto by_layer = groups_of(one, GroupBy::layer);
  EXPECT_DOUBLE_EQ(by_layer[0].gflops_per_s().value(), 2000);
  EXPECT_FALSE(by_layer[0].gbytes_per_s()) << "what the relu moves is not known";
  EXPECT_FALSE(by_layer[1].gflops_per_s());
  const auto by_name = groups_of(one);
  EXPECT_DOUBLE_EQ(by_name[0].gbytes_per_s().value(), 2);
  EXPECT_FALSE(by_name[1].gflops_per_s()) << "a relu multiplies no matrices";
}

TEST(OperationLayers, operations_without_layers_get_those_of_the_graph_in_its_order) {
  auto own = profile({operation("input", std::nullopt, 1), operation("conv2d", std::nullopt, 1),
                      operation("relu_", std::nullopt, 1), operation("odd", std::nullopt, 1),
                      operation("_convolution", std::nullopt, 1), operation("linear", std::nullopt, 1)});
  assign_layers(
      own, {{"conv2d", "a"}, {"batch_norm", "b"}, {"relu", "c"}, {"conv2d", "d"}, {"flatten", ""}, {"linear", "e"}});
  std::vector<std::string> layers;
  for (const auto& each : own.operations) layers.push_back(each.layer.value_or("-"));
  EXPECT_THAT(layers, ElementsAre("-", "a", "c", "-", "d", "e"));
}

TEST(OperationLayers, a_level_that_knows_its_layers_keeps_them) {
  auto own = profile({operation("conv2d", std::nullopt, 1), operation("conv2d", "mine", 1)});
  assign_layers(own, {{"conv2d", "a"}, {"conv2d", "b"}});
  EXPECT_FALSE(own.operations[0].layer);
  EXPECT_EQ(own.operations[1].layer, "mine");
}

TEST(OperationLayers, a_compilers_other_order_is_seen_by_the_sizes_of_inputs) {
  const std::vector<GraphOperation> graph{{"conv2d", "a", 0, 0, {{1, 4, 8, 8}, {4, 4, 3, 3}}},
                                          {"conv2d", "b", 0, 0, {{1, 4, 8, 8}, {8, 4, 3, 3}}},
                                          {"conv2d", "down", 0, 0, {{1, 4, 8, 8}, {8, 4, 1, 1}}},
                                          {"linear", "fc", 0, 0, {{2, 3, 8}, {5, 8}, {5}}}};
  auto own = profile({operation("convolution", std::nullopt, 1), operation("convolution", std::nullopt, 1),
                      operation("convolution", std::nullopt, 1), operation("addmm", std::nullopt, 1),
                      operation("convolution", std::nullopt, 1)});
  own.operations[0].shapes = {{1, 4, 8, 8}, {8, 4, 1, 1}};
  own.operations[1].shapes = {{1, 4, 8, 8}, {4, 4, 3, 3}, {4}};
  own.operations[2].shapes = {{1, 4, 8, 8}, {8, 4, 3, 3}};
  own.operations[3].shapes = {{5}, {6, 8}, {8, 5}};
  own.operations[4].shapes = {{1, 2, 3, 4}, {2, 2, 3, 3}};
  assign_layers(own, graph);
  std::vector<std::string> layers;
  for (const auto& each : own.operations) layers.push_back(each.layer.value_or("-"));
  EXPECT_THAT(layers, ElementsAre("down", "a", "b", "fc", "-"));
}

TEST(OperationLayers, products_get_the_work_of_their_layer_where_it_can_be_told_apart) {
  const std::vector<GraphOperation> graph{{"conv2d", "a", 10, 1},  {"batch_norm", "a", 0, 9}, {"matmul", "at", 20, 2},
                                          {"matmul", "at", 30, 3}, {"linear", "l", 40, 4},    {"linear", "l", 50, 5},
                                          {"linear", "m", 60, 6},  {"linear", "m", 70, 7}};
  auto own = profile({operation("convolution", "a", 1), operation("batch_norm", "a", 1),
                      operation("scaled_dot_product_attention", "at", 1), operation("linear", "l", 1),
                      operation("addmm", "l", 1), operation("linear", "m", 1), operation("linear", "m", 1),
                      operation("linear", "m", 1), operation("linear", std::nullopt, 1)});
  assign_work(own, graph);
  std::vector<double> flops, bytes;
  for (const auto& each : own.operations)
    flops.push_back(each.flops.value_or(-1)), bytes.push_back(each.bytes.value_or(-1));
  EXPECT_THAT(flops, ElementsAre(10, -1, 50, 40, 50, -1, -1, -1, -1));
  EXPECT_THAT(bytes, ElementsAre(1, -1, -1, 4, 5, -1, -1, -1, -1)) << "one call for two products moves less than both";
}

}  // namespace
}  // namespace strata::analysis
