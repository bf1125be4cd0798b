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

TEST(OperationGroups, calls_of_one_name_and_kernel_are_one_line_the_longest_first) {
  const auto groups =
      groups_of(profile({operation("relu", "a", 1), operation("conv2d", "b", 5), operation("relu", "c", 2)}));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].operation, "conv2d");
  EXPECT_EQ(groups[1].calls, 2);
  EXPECT_DOUBLE_EQ(groups[1].ms, 3);
  EXPECT_EQ(groups[1].longest_layer, "c");
}

TEST(OperationLayers, operations_without_layers_get_those_of_the_graph_in_its_order) {
  auto own = profile({operation("input", std::nullopt, 1), operation("conv2d", std::nullopt, 1),
                      operation("relu_", std::nullopt, 1), operation("odd", std::nullopt, 1),
                      operation("conv2d", std::nullopt, 1), operation("linear", std::nullopt, 1)});
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

}  // namespace
}  // namespace strata::analysis
