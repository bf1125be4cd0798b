// SPDX-License-Identifier: Apache-2.0
// The table of operations: shapes and types as PyTorch's, FLOPs as its counter's, and every mismatch named with its
// place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "graph/check.hpp"
#include "unit/graph_one_node.hpp"

namespace strata::graph {
namespace {
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The FLOPs of a node that must be right; an error's text otherwise.
std::string checked(const std::string& op, const std::vector<Tensor>& tensors, const json& args,
                    const std::vector<Tensor>& outputs) {
  const auto graph = one_node(op, tensors, args, outputs);
  if (!graph) return graph.error().what;
  const auto found = check(*graph);
  if (!found) return found.error().what;
  return found->unknown.empty() ? std::to_string(found->total.flops) : "unknown";
}

json convolution(std::vector<int> stride, json padding, std::vector<int> dilation, int groups, json bias = nullptr) {
  return {{"input", value(0)},  {"weight", value(1)},   {"bias", bias},    {"stride", stride},
          {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
}

TEST(GraphOperations, convolution_follows_stride_padding_dilation_and_groups) {
  EXPECT_EQ(checked("aten.conv2d.default", {{{2, 3, 224, 224}}, {{64, 3, 7, 7}}},
                    convolution({2, 2}, {3, 3}, {1, 1}, 1), {{{2, 64, 112, 112}}}),
            "472055808");
  EXPECT_EQ(checked("aten.conv2d.default", {{{1, 32, 14, 14}}, {{32, 1, 3, 3}}},
                    convolution({1, 1}, {2, 2}, {2, 2}, 32), {{{1, 32, 14, 14}}}),
            "112896");
  EXPECT_EQ(checked("aten.conv2d.padding", {{{1, 4, 9, 9}}, {{8, 4, 3, 5}}}, convolution({1, 1}, "same", {2, 1}, 1),
                    {{{1, 8, 9, 9}}}),
            "77760");
  EXPECT_EQ(checked("aten.conv2d.default", {{{0, 4, 9, 9}}, {{8, 4, 3, 3}}}, convolution({1, 1}, {1, 1}, {1, 1}, 1),
                    {{{0, 8, 9, 9}}}),
            "0");
}

// Of 5 steps, 2 samples, 3 inputs and 4 hidden elements.
std::string checked_layer(int mode, const Shape& weight, const Shape& state, const json& cell, bool trains,
                          const std::vector<Tensor>& outputs) {
  return checked("aten.mkldnn_rnn_layer.default", {{{5, 2, 3}}, {weight}, {{weight[0], 4}}, {state}},
                 {{"input", value(0)},
                  {"weight0", value(1)},
                  {"weight1", value(2)},
                  {"weight2", nullptr},
                  {"weight3", nullptr},
                  {"hx_", value(3)},
                  {"cx_", cell},
                  {"reverse", false},
                  {"mode", mode},
                  {"train", trains}},
                 outputs);
}

TEST(GraphOperations, a_recurrent_layer_has_the_gates_and_states_of_its_kind) {
  const Tensor sequence{{5, 2, 4}}, state{{2, 4}};
  EXPECT_EQ(checked_layer(1, {4, 3}, {2, 4}, nullptr, false, {sequence, state}), "560");
  EXPECT_EQ(checked_layer(3, {12, 3}, {2, 4}, nullptr, false, {sequence, state}), "1680");
  EXPECT_EQ(checked_layer(2, {16, 3}, {2, 4}, value(3), false, {sequence, state, state}), "2240");
  EXPECT_EQ(checked_layer(2, {16, 3}, {2, 4}, value(3), true, {sequence, state, state, {{0}}}), "2240");
  EXPECT_THAT(checked_layer(3, {16, 3}, {2, 4}, nullptr, false, {sequence, state}),
              HasSubstr("'weight0' is float32 [16, 3], it should be float32 [12, 3]"));
  EXPECT_THAT(checked_layer(1, {4, 3}, {3, 4}, nullptr, false, {sequence, state}),
              HasSubstr("'hx_' is float32 [3, 4], it should be float32 [2, 4]"));
  EXPECT_THAT(checked_layer(2, {16, 3}, {2, 4}, nullptr, false, {sequence, state, state}),
              HasSubstr("'cx_' is left out"));
  EXPECT_THAT(checked_layer(4, {16, 3}, {2, 4}, nullptr, false, {sequence, state}), HasSubstr("'mode' is 4"));
}

TEST(GraphOperations, a_wrong_shape_is_named_with_node_module_and_line) {
  EXPECT_EQ(checked("aten.conv2d.default", {{{2, 3, 224, 224}}, {{64, 3, 7, 7}}},
                    convolution({2, 2}, {3, 3}, {1, 1}, 1), {{{2, 64, 111, 112}}}),
            "node 'it' (conv2d) in net.layer (Layer), net.py:3: output 0 is recorded as float32 [2, 64, 111, 112], the "
            "operation gives float32 [2, 64, 112, 112]");
  EXPECT_THAT(checked("aten.conv2d.default", {{{2, 4, 8, 8}}, {{8, 3, 3, 3}}}, convolution({1, 1}, {0, 0}, {1, 1}, 1),
                      {{{2, 8, 6, 6}}}),
              HasSubstr("the input has 4 channels, the weight [8, 3, 3, 3] wants 3"));
  EXPECT_THAT(checked("aten.conv2d.default", {{{2, 3, 2, 8}}, {{8, 3, 3, 3}}}, convolution({1, 1}, {0, 0}, {1, 1}, 1),
                      {{{2, 8, 0, 6}}}),
              HasSubstr("the kernel [8, 3, 3, 3] is larger"));
  EXPECT_THAT(checked("aten.conv2d.default", {{{2, 3, 8, 8}}, {{8, 3, 3, 3}}}, convolution({0, 1}, {0, 0}, {1, 1}, 1),
                      {{{2, 8, 6, 6}}}),
              HasSubstr("stride 0"));
  EXPECT_THAT(checked("aten.conv2d.default", {{{2, 3, 8, 8}}, {{8, 3, 3, 3}}}, convolution({1, 1}, {0, 0}, {1, 1}, 0),
                      {{{2, 8, 6, 6}}}),
              HasSubstr("8 output channels in 0 groups"));
  EXPECT_THAT(checked("aten.conv2d.default", {{{2, 3, 8, 8}, "int64"}, {{8, 3, 3, 3}}},
                      convolution({1, 1}, {0, 0}, {1, 1}, 1), {{{2, 8, 6, 6}}}),
              HasSubstr("the input is int64, the weight float32"));
  EXPECT_THAT(checked("aten.conv2d.default", {{{2, 3, 8, 8}}, {{8, 3, 3, 3}}}, convolution({1, 1}, 3, {1, 1}, 1),
                      {{{2, 8, 6, 6}}}),
              HasSubstr("argument 'padding' is 3, expected a list of integers"));
}

TEST(GraphOperations, work_that_64_bits_cannot_count_is_refused) {
  const std::int64_t wide = 1ll << 30;
  EXPECT_THAT(checked("aten.linear.default", {{{wide, wide}}, {{1, wide}}},
                      {{"input", value(0)}, {"weight", value(1)}, {"bias", nullptr}}, {{{wide, 1}}}),
              "2305843009213693952");
  EXPECT_THAT(checked("aten.matmul.default", {{{wide, wide}}, {{wide, wide}}},
                      {{"self", value(0)}, {"other", value(1)}}, {{{wide, wide}}}),
              HasSubstr("more than 64 bits can count"));
}

json batch_norm(bool training) {
  return {{"input", value(0)},       {"weight", value(1)},   {"bias", value(2)}, {"running_mean", value(3)},
          {"running_var", value(4)}, {"training", training}, {"momentum", 0.1},  {"eps", 1e-5},
          {"cudnn_enabled", false}};
}

TEST(GraphOperations, batch_norm_gives_its_statistics_in_training) {
  const std::vector<Tensor> tensors{{{2, 4, 8, 8}}, {{4}}, {{4}}, {{4}}, {{4}}};
  EXPECT_EQ(checked("aten.batch_norm.default", tensors, batch_norm(false), {{{2, 4, 8, 8}}}), "0");
  EXPECT_EQ(checked("aten.batch_norm.default", tensors, batch_norm(true), {{{2, 4, 8, 8}}, {{4}}, {{4}}}), "0");
  EXPECT_THAT(checked("aten.batch_norm.default", tensors, batch_norm(true), {{{2, 4, 8, 8}}}),
              HasSubstr("it gives 3 outputs, the graph records 1"));
  EXPECT_THAT(checked("aten.batch_norm.default", {{{2, 4, 8, 8}}, {{4}}, {{5}}, {{4}}, {{4}}}, batch_norm(false),
                      {{{2, 4, 8, 8}}}),
              HasSubstr("bias is [5], expected [4]"));
}

json pooling(bool ceil) {
  return {{"self", value(0)},  {"kernel_size", {3, 3}}, {"stride", {2, 2}},
          {"padding", {0, 0}}, {"dilation", {1, 1}},    {"ceil_mode", ceil}};
}

TEST(GraphOperations, pooling_counts_windows_as_pytorch_does) {
  EXPECT_EQ(checked("aten.max_pool2d.default", {{{1, 4, 14, 13}}}, pooling(false), {{{1, 4, 6, 6}}}), "0");
  EXPECT_EQ(checked("aten.max_pool2d.default", {{{1, 4, 14, 13}}}, pooling(true), {{{1, 4, 7, 6}}}), "0");
  json padded = {{"self", value(0)},  {"kernel_size", {2, 2}}, {"stride", {2, 2}},
                 {"padding", {1, 1}}, {"dilation", {1, 1}},    {"ceil_mode", true}};
  EXPECT_EQ(checked("aten.max_pool2d.default", {{{1, 1, 5, 5}}}, padded, {{{1, 1, 3, 3}}}),
            "0");                     // a fourth window would begin in the padding
  auto over_the_end = pooling(true);  // its only window
  over_the_end.update({{"kernel_size", {3, 3}}, {"stride", {3, 3}}, {"dilation", {2, 2}}});
  EXPECT_EQ(checked("aten.max_pool2d.default", {{{1, 1, 4, 4}}}, over_the_end, {{{1, 1, 1, 1}}}), "0");
  EXPECT_EQ(checked("aten.adaptive_avg_pool2d.default", {{{1, 4, 14, 13}}},
                    {{"self", value(0)}, {"output_size", {1, 1}}}, {{{1, 4, 1, 1}}}),
            "0");
}

TEST(GraphOperations, products_of_matrices_broadcast_and_count_two_a_multiply_add) {
  const json args = {{"self", value(0)}, {"other", value(1)}};
  EXPECT_EQ(checked("aten.matmul.default", {{{5, 1, 2, 3}}, {{4, 3, 6}}}, args, {{{5, 4, 2, 6}}}), "1440");
  EXPECT_EQ(checked("aten.matmul.default", {{{3}}, {{4, 3, 6}}}, args, {{{4, 6}}}), "144");
  EXPECT_EQ(checked("aten.matmul.default", {{{4, 6, 3}}, {{3}}}, args, {{{4, 6}}}), "144");
  EXPECT_THAT(checked("aten.matmul.default", {{{2, 3}}, {{4, 5}}}, args, {{{2, 5}}}),
              HasSubstr("[2, 3] and [4, 5] cannot be multiplied"));
  EXPECT_EQ(checked("aten.linear.default", {{{2, 7, 3}}, {{6, 3}}, {{6}}},
                    {{"input", value(0)}, {"weight", value(1)}, {"bias", value(2)}}, {{{2, 7, 6}}}),
            "504");
  EXPECT_EQ(
      checked("aten.einsum.default", {{{2, 3, 4}}, {{2, 5, 4}}},
              {{"equation", "b i d, b j d -> b i j"}, {"tensors", values({0, 1})}, {"path", nullptr}}, {{{2, 3, 5}}}),
      "240");
}

TEST(GraphOperations, attention_counts_both_products) {
  const json args = {{"query", value(0)}, {"key", value(1)},    {"value", value(2)}, {"attn_mask", nullptr},
                     {"dropout_p", 0.0},  {"is_causal", false}, {"scale", nullptr},  {"enable_gqa", false}};
  EXPECT_EQ(checked("aten.scaled_dot_product_attention.default",
                    {{{2, 12, 10, 64}}, {{2, 12, 20, 64}}, {{2, 12, 20, 32}}}, args, {{{2, 12, 10, 32}}}),
            "921600");
  EXPECT_THAT(checked("aten.scaled_dot_product_attention.default",
                      {{{2, 12, 10, 64}}, {{2, 12, 20, 64}}, {{2, 12, 21, 64}}}, args, {{{2, 12, 10, 64}}}),
              HasSubstr("do not fit"));
}

TEST(GraphOperations, types_are_promoted_as_pytorch_does) {
  const json two = {{"self", value(0)}, {"other", value(1)}, {"alpha", 1}};
  EXPECT_EQ(checked("aten.add.Tensor", {{{3}, "int64"}, {{3}, "float16"}}, two, {{{3}, "float16"}}), "0");
  EXPECT_EQ(checked("aten.add.Tensor", {{{3}, "float32"}, {{}, "float64"}}, two, {{{3}, "float32"}}), "0");
  EXPECT_EQ(checked("aten.add.Tensor", {{{3}, "bfloat16"}, {{3}, "float16"}}, two, {{{3}, "float32"}}), "0");
  EXPECT_EQ(
      checked("aten.add.Tensor", {{{}, "int64"}}, {{"self", value(0)}, {"other", 1}, {"alpha", 1}}, {{{}, "int64"}}),
      "0");
  EXPECT_EQ(checked("aten.div.Tensor", {{{3}, "int64"}, {{3}, "int64"}}, {{"self", value(0)}, {"other", value(1)}},
                    {{{3}, "float32"}}),
            "0");
  EXPECT_EQ(checked("aten.gt.Scalar", {{{3}}}, {{"self", value(0)}, {"other", "inf"}}, {{{3}, "bool"}}), "0");
  EXPECT_THAT(checked("aten.add.Tensor", {{{3}}, {{4}}}, two, {{{3}}}), HasSubstr("[3] and [4] cannot be broadcast"));
  EXPECT_THAT(checked("aten.mul.Tensor", {{{3}}}, {{"self", value(0)}, {"other", "two"}}, {{{3}}}),
              HasSubstr("argument 'other' is \"two\", expected a number"));
}

struct Shaped {
  const char* name;
  const char* op;
  std::vector<Tensor> tensors;
  json args;
  std::vector<Tensor> outputs;
};

class GraphShape : public testing::TestWithParam<Shaped> {};

TEST_P(GraphShape, follows) {
  const auto& one = GetParam();
  EXPECT_EQ(checked(one.op, one.tensors, one.args, one.outputs), "0");
  auto wrong = one.outputs;
  wrong.back().shape.push_back(7);
  EXPECT_THAT(checked(one.op, one.tensors, one.args, wrong), HasSubstr("is recorded as"));
}

constexpr auto largest = std::numeric_limits<std::int64_t>::max();
const std::vector<Shaped> shapes{
    {"view_with_one_open", "aten.view.default", {{{2, 6, 5}}}, {{"self", value(0)}, {"size", {-1, 10}}}, {{{6, 10}}}},
    {"flatten",
     "aten.flatten.using_ints",
     {{{2, 3, 4, 5}}},
     {{"self", value(0)}, {"start_dim", 1}, {"end_dim", -1}},
     {{{2, 60}}}},
    {"unflatten",
     "aten.unflatten.int",
     {{{2, 60}}},
     {{"self", value(0)}, {"dim", -1}, {"sizes", {3, -1}}},
     {{{2, 3, 20}}}},
    {"permute",
     "aten.permute.default",
     {{{2, 3, 4, 5}}},
     {{"self", value(0)}, {"dims", {0, 2, -1, 1}}},
     {{{2, 4, 5, 3}}}},
    {"transpose", "aten.transpose.int", {{{2, 3, 4}}}, {{"self", value(0)}, {"dim0", -2}, {"dim1", 0}}, {{{3, 2, 4}}}},
    {"squeeze_one", "aten.squeeze.dim", {{{2, 1, 4}}}, {{"self", value(0)}, {"dim", 1}}, {{{2, 4}}}},
    {"squeeze_none", "aten.squeeze.dim", {{{2, 1, 4}}}, {{"self", value(0)}, {"dim", 0}}, {{{2, 1, 4}}}},
    {"unsqueeze", "aten.unsqueeze.default", {{{2, 4}}}, {{"self", value(0)}, {"dim", -1}}, {{{2, 4, 1}}}},
    {"select", "aten.select.int", {{{2, 3, 4}}}, {{"self", value(0)}, {"dim", 1}, {"index", -3}}, {{{2, 4}}}},
    {"slice_to_the_end",
     "aten.slice.Tensor",
     {{{2, 7}}},
     {{"self", value(0)}, {"dim", 1}, {"start", 1}, {"end", largest}, {"step", 2}},
     {{{2, 3}}}},
    {"slice_from_the_end",
     "aten.slice.Tensor",
     {{{2, 7}}},
     {{"self", value(0)}, {"dim", 1}, {"start", -3}, {"end", nullptr}, {"step", 1}},
     {{{2, 3}}}},
    {"chunk_of_unequal_parts",
     "aten.chunk.default",
     {{{2, 7}}},
     {{"self", value(0)}, {"chunks", 3}, {"dim", 1}},
     {{{2, 3}}, {{2, 3}}, {{2, 1}}}},
    {"split_by_sizes",
     "aten.split.sizes",
     {{{7, 2}}},
     {{"self", value(0)}, {"split_size", {2, 5}}, {"dim", 0}},
     {{{2, 2}}, {{5, 2}}}},
    {"unbind", "aten.unbind.int", {{{2, 3}}}, {{"self", value(0)}, {"dim", 0}}, {{{3}}, {{3}}}},
    {"expand",
     "aten.expand.default",
     {{{1, 3}}},
     {{"self", value(0)}, {"size", {4, 2, -1}}, {"implicit", false}},
     {{{4, 2, 3}}}},
    {"cat", "aten.cat.default", {{{2, 3}}, {{2, 5}}}, {{"tensors", values({0, 1})}, {"dim", -1}}, {{{2, 8}}}},
    {"stack", "aten.stack.default", {{{2, 3}}, {{2, 3}}}, {{"tensors", values({0, 1})}, {"dim", 1}}, {{{2, 2, 3}}}},
    {"pad_the_last_axis_first",
     "aten.pad.default",
     {{{2, 3, 4}}},
     {{"self", value(0)}, {"pad", {1, 2, 0, -1}}, {"mode", "constant"}, {"value", nullptr}},
     {{{2, 2, 7}}}},
    {"roll",
     "aten.roll.default",
     {{{2, 8, 8}}},
     {{"self", value(0)}, {"shifts", {-3, 3}}, {"dims", {1, 2}}},
     {{{2, 8, 8}}}},
    {"index_of_neighbours",
     "aten.index.Tensor",
     {{{5, 6, 7}}, {{2}, "int64"}, {{3, 1}, "int64"}},
     {{"self", value(0)}, {"indices", {{"values", {nullptr, 1, 2}}}}},
     {{{5, 3, 2}}}},
    {"index_of_strangers",
     "aten.index.Tensor",
     {{{5, 6, 7}}, {{2}, "int64"}, {{2}, "int64"}},
     {{"self", value(0)}, {"indices", {{"values", {1, nullptr, 2}}}}},
     {{{2, 6}}}},
    {"embedding",
     "aten.embedding.default",
     {{{50, 16}}, {{2, 12}, "int64"}},
     {{"weight", value(0)}, {"indices", value(1)}, {"padding_idx", -1}},
     {{{2, 12, 16}}}},
    {"mean_over_axes",
     "aten.mean.dim",
     {{{2, 3, 4, 5}}},
     {{"self", value(0)}, {"dim", {2, -1}}, {"keepdim", false}, {"dtype", nullptr}},
     {{{2, 3}}}},
    {"mean_kept",
     "aten.mean.dim",
     {{{2, 3, 4}}},
     {{"self", value(0)}, {"dim", {1}}, {"keepdim", true}, {"dtype", nullptr}},
     {{{2, 1, 4}}}},
    {"sum_of_all", "aten.sum.default", {{{2, 3}, "bool"}}, {{"self", value(0)}, {"dtype", nullptr}}, {{{}, "int64"}}},
    {"softmax", "aten.softmax.int", {{{2, 3}}}, {{"self", value(0)}, {"dim", -1}, {"dtype", nullptr}}, {{{2, 3}}}},
    {"layer_norm",
     "aten.layer_norm.default",
     {{{2, 3, 4}}, {{3, 4}}},
     {{"input", value(0)}, {"normalized_shape", {3, 4}}, {"weight", value(1)}, {"bias", nullptr}, {"eps", 1e-5}},
     {{{2, 3, 4}}}},
    {"clamp_by_a_tensor",
     "aten.clamp.Tensor",
     {{{2, 1}}, {{3}}},
     {{"self", value(0)}, {"min", value(1)}, {"max", nullptr}},
     {{{2, 3}}}},
    {"where",
     "aten.where.self",
     {{{2, 1}, "bool"}, {{3}}, {{}}},
     {{"condition", value(0)}, {"self", value(1)}, {"other", value(2)}},
     {{{2, 3}}}},
    {"topk",
     "aten.topk.default",
     {{{2, 5, 3}}},
     {{"self", value(0)}, {"k", 2}, {"dim", 1}, {"largest", true}, {"sorted", true}},
     {{{2, 2, 3}}, {{2, 2, 3}, "int64"}}},
    {"scatter",
     "aten.scatter.src",
     {{{2, 5}}, {{2, 3}, "int64"}, {{2, 4}}},
     {{"self", value(0)}, {"dim", 1}, {"index", value(1)}, {"src", value(2)}},
     {{{2, 5}}}},
    {"windows",
     "aten.im2col.default",
     {{{2, 3, 7, 6}}},
     {{"self", value(0)}, {"kernel_size", {2, 3}}, {"dilation", {2, 1}}, {"padding", {1, 0}}, {"stride", {2, 1}}},
     {{{2, 18, 16}}}},
    {"pixels",
     "aten.col2im.default",
     {{{18, 16}}},
     {{"self", value(0)},
      {"output_size", {7, 6}},
      {"kernel_size", {2, 3}},
      {"dilation", {2, 1}},
      {"padding", {1, 0}},
      {"stride", {2, 1}}},
     {{{3, 7, 6}}}},
    {"size_by_factors",
     "aten.upsample_bilinear2d.vec",
     {{{2, 3, 7, 6}}},
     {{"input", value(0)}, {"output_size", nullptr}, {"align_corners", false}, {"scale_factors", {1.5, 0.5}}},
     {{{2, 3, 10, 3}}}},
    {"cross_entropy_of_a_batch",
     "aten.cross_entropy_loss.default",
     {{{4, 10}}, {{4}, "int64"}},
     {{"self", value(0)}, {"target", value(1)}, {"reduction", 1}},
     {{{}}}},
    {"nll_of_each",
     "aten.nll_loss_nd.default",
     {{{4, 10, 3}}, {{4, 3}, "int64"}},
     {{"self", value(0)}, {"target", value(1)}, {"reduction", 0}},
     {{{4, 3}}}},
};

INSTANTIATE_TEST_SUITE_P(GraphOperations, GraphShape, testing::ValuesIn(shapes),
                         [](const auto& one) { return one.param.name; });

TEST(GraphOperations, counts_bytes_once_a_tensor_and_none_for_a_view) {
  const auto add =
      one_node("aten.add.Tensor", {{{2, 8}}}, {{"self", value(0)}, {"other", value(0)}, {"alpha", 1}}, {{{2, 8}}});
  const auto work = check(*add);
  ASSERT_TRUE(work) << work.error().what;
  EXPECT_EQ(work->total.bytes_read, 64);
  EXPECT_EQ(work->total.bytes_written, 64);
  const auto permute = one_node("aten.permute.default", {{{2, 8}}}, {{"self", value(0)}, {"dims", {1, 0}}}, {{{8, 2}}});
  const auto view = check(*permute);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->nodes[0].aliasing, Aliasing::strided);
  EXPECT_EQ(view->total.bytes_read + view->total.bytes_written, 0);
  const auto rows = one_node("aten.embedding.default", {{{1000, 16}}, {{3}, "int64"}},
                             {{"weight", value(0)}, {"indices", value(1)}, {"padding_idx", -1}}, {{{3, 16}}});
  EXPECT_EQ(check(*rows)->total.bytes_read, 3 * 16 * 4 + 3 * 8);
}

TEST(GraphOperations, an_unknown_operation_is_named_with_its_place_and_is_no_error) {
  const auto graph = one_node("torchvision.nms.default", {{{4, 4}}}, {{"dets", value(0)}}, {{{4}, "int64"}});
  const auto found = check(*graph);
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_THAT(found->unknown, ElementsAre(0));
  EXPECT_FALSE(found->total.known);
  EXPECT_EQ(graph->nodes[0].where(), "node 'it' (torchvision.nms) in net.layer (Layer), net.py:3");
  EXPECT_GT(found->total.bytes_read, 0);
}

TEST(GraphOperations, the_table_has_no_name_twice_and_a_rule_for_each) {
  const auto names = known_operations();
  EXPECT_GE(names.size(), 80u);
  for (const auto name : names) {
    ASSERT_NE(find_operation(name), nullptr) << name;
    EXPECT_NE(find_operation(name)->outputs, nullptr) << name;
    EXPECT_EQ(find_operation(name)->name, name);
  }
  EXPECT_EQ(find_operation("conv"), nullptr);
}

}  // namespace
}  // namespace strata::graph
