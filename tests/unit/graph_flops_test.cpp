// SPDX-License-Identifier: Apache-2.0
// The count of floating-point operations against numbers worked out by hand; what no rule knows is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/check.hpp"
#include "graph/flops.hpp"
#include "unit/graph_one_node.hpp"

namespace strata::graph {
namespace {
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using Tensors = std::vector<Tensor>;

constexpr std::int64_t not_counted = -1;

std::int64_t counted(const std::string& op, const Tensors& tensors, const json& args, const Tensors& outputs) {
  const auto graph = one_node(op, tensors, args, outputs);
  if (!graph) {
    ADD_FAILURE() << graph.error().what;
    return -2;
  }
  const auto flops = flops_of(*graph);
  const auto checked = check(*graph);
  EXPECT_TRUE(checked) << checked.error().what;
  EXPECT_EQ(checked->total.flops, flops.total) << "`graph` and `compare` have one count";
  EXPECT_EQ(checked->uncounted, flops.uncounted);
  EXPECT_EQ(checked->nodes[0].counted, flops.uncounted.empty());
  return flops.uncounted.empty() ? flops.total : not_counted;
}

json recurrent(int first, int weights, bool lstm) {
  std::vector<int> params(static_cast<std::size_t>(weights));
  for (int i = 0; i < weights; ++i) params[static_cast<std::size_t>(i)] = first + i;
  json args = {{"input", value(0)}, {"params", values(params)}};
  args["hx"] = lstm ? values({1, 2}) : value(1);
  return args;
}

// 4 * 64 rows in each matrix: 50 steps * (256 * 64 + 256 * 64) multiply-adds.
TEST(GraphFlops, an_lstm_of_64_features_over_50_steps) {
  const Tensors tensors{{{1, 50, 64}}, {{1, 1, 64}}, {{1, 1, 64}}, {{256, 64}}, {{256, 64}}, {{256}}, {{256}}};
  EXPECT_EQ(counted("aten.lstm.input", tensors, recurrent(3, 4, true), {{{1, 50, 64}}, {{1, 1, 64}}, {{1, 1, 64}}}),
            3'276'800);
  // as PyTorch calls oneDNN for it
  EXPECT_EQ(counted("aten.mkldnn_rnn_layer.default",
                    {{{50, 1, 64}}, {{256, 64}}, {{256, 64}}, {{256}}, {{256}}, {{1, 64}}, {{1, 64}}},
                    {{"input", value(0)},
                     {"weight0", value(1)},
                     {"weight1", value(2)},
                     {"weight2", value(3)},
                     {"weight3", value(4)},
                     {"hx_", value(5)},
                     {"cx_", value(6)},
                     {"mode", 2},
                     {"train", false}},
                    {{{50, 1, 64}}, {{1, 64}}, {{1, 64}}}),
            3'276'800);
}

// A GRU of 3 gates of 4: its state goes back through 12 * 4 weights at each of 5 * 2 steps and samples; the gradient of
// the input takes 12 * 3 more, those of the two matrices as many as these have.
TEST(GraphFlops, the_gradients_of_a_recurrent_layer_are_counted_where_they_are_wanted) {
  const Tensors tensors{{{5, 2, 3}}, {{12, 3}}, {{12, 4}}, {{2, 4}}, {{5, 2, 4}}};
  const auto count = [&](std::vector<bool> mask, const Tensors& outputs) {
    mask.resize(7, false);
    return counted("aten.mkldnn_rnn_layer_backward.default", tensors,
                   {{"input", value(0)},
                    {"weight0", value(1)},
                    {"weight1", value(2)},
                    {"hx_", value(3)},
                    {"cx_", nullptr},
                    {"grad_output", value(4)},
                    {"grad_hy", value(3)},
                    {"mode", 3},
                    {"output_mask", mask}},
                   outputs);
  };
  EXPECT_EQ(count({true}, {{{5, 2, 3}}}), 2 * 10 * (48 + 36));
  EXPECT_EQ(count({true, true, true}, {{{5, 2, 3}}, {{12, 3}}, {{12, 4}}}), 2 * 10 * (48 + 36 + 36 + 48));
  EXPECT_EQ(count({false, false, false, true, true}, {{{12}}, {{12}}}), 2 * 10 * 48);
}

// Two layers in two directions, projected from 20 to 5: each of the four has (80 * 10 + 80 * 5 + 5 * 20) weights, since
// the second layer reads both directions of the first; 7 steps of 3 samples.
TEST(GraphFlops, layers_directions_and_projections_of_an_lstm) {
  Tensors tensors{{{7, 3, 10}}, {{4, 3, 5}}, {{4, 3, 20}}};
  for (int i = 0; i < 4; ++i) tensors.insert(tensors.end(), {{{80, 10}}, {{80, 5}}, {{80}}, {{80}}, {{5, 20}}});
  EXPECT_EQ(counted("aten.lstm.input", tensors, recurrent(3, 20, true), {{{7, 3, 10}}, {{4, 3, 5}}, {{4, 3, 20}}}),
            2 * 21 * 4 * 1300);
}

TEST(GraphFlops, gru_and_plain_recurrent_layers) {
  // two directions, (18 * 8 + 18 * 6) weights each, 2 samples of 5 steps
  const Tensors gru{{{2, 5, 8}}, {{2, 2, 6}}, {{18, 8}}, {{18, 6}}, {{18}},
                    {{18}},      {{18, 8}},   {{18, 6}}, {{18}},    {{18}}};
  EXPECT_EQ(counted("aten.gru.input", gru, recurrent(2, 8, false), {{{2, 5, 12}}, {{2, 2, 6}}}), 10'080);
  const Tensors plain{{{5, 2, 3}}, {{1, 2, 4}}, {{4, 3}}, {{4, 4}}};
  for (const char* op : {"aten.rnn_tanh.input", "aten.rnn_relu.input"})
    EXPECT_EQ(counted(op, plain, recurrent(2, 2, false), {{{5, 2, 4}}, {{1, 2, 4}}}), 2 * 10 * 28) << op;
}

// Of a packed sequence 11 steps and samples are left.
TEST(GraphFlops, a_packed_sequence_counts_the_steps_that_it_holds) {
  const Tensors tensors{{{11, 3}}, {{5}, "int64"}, {{1, 3, 4}}, {{4, 3}}, {{4, 4}}};
  EXPECT_EQ(counted("aten.rnn_tanh.data", tensors,
                    {{"data", value(0)}, {"batch_sizes", value(1)}, {"hx", value(2)}, {"params", values({3, 4})}},
                    {{{11, 4}}, {{1, 3, 4}}}),
            2 * 11 * 28);
}

TEST(GraphFlops, one_step_of_a_cell) {
  const Tensors tensors{{{2, 3}}, {{2, 4}}, {{2, 4}}, {{16, 3}}, {{16, 4}}};
  EXPECT_EQ(counted("aten.lstm_cell.default", tensors,
                    {{"input", value(0)}, {"hx", values({1, 2})}, {"w_ih", value(3)}, {"w_hh", value(4)}},
                    {{{2, 4}}, {{2, 4}}}),
            2 * 2 * 112);
}

json transposed(int groups, int stride = 1, int padding = 0, int dilation = 1, int more = 0) {
  return {{"input", value(0)},    {"weight", value(1)},       {"bias", nullptr},  {"stride", {stride}},
          {"padding", {padding}}, {"output_padding", {more}}, {"groups", groups}, {"dilation", {dilation}}};
}

// Every input element goes into as many products as its channel has weights.
TEST(GraphFlops, transposed_convolutions_in_one_two_and_three_dimensions) {
  EXPECT_EQ(counted("aten.conv_transpose1d.default", {{{2, 3, 10}}, {{3, 5, 4}}}, transposed(1), {{{2, 5, 13}}}),
            2 * (2 * 3 * 10) * (5 * 4));
  // stride 2, padding 1, dilation 2, output padding 1, in two groups of 3 channels
  EXPECT_EQ(counted("aten.conv_transpose2d.input", {{{1, 8, 5, 5}}, {{8, 3, 3, 3}}}, transposed(2, 2, 1, 2, 1),
                    {{{1, 6, 12, 12}}}),
            2 * (8 * 5 * 5) * (3 * 3 * 3));
  EXPECT_EQ(
      counted("aten.conv_transpose2d.input", {{{8, 5, 5}}, {{8, 3, 3, 3}}}, transposed(2, 2, 1, 2, 1), {{{6, 12, 12}}}),
      2 * (8 * 5 * 5) * (3 * 3 * 3))
      << "without a batch";
  EXPECT_EQ(counted("aten.conv_transpose3d.input", {{{1, 2, 3, 3, 3}}, {{2, 4, 2, 2, 2}}}, transposed(1, 2),
                    {{{1, 4, 6, 6, 6}}}),
            2 * (2 * 27) * (4 * 8));
}

TEST(GraphFlops, the_one_convolution_that_all_forms_decompose_into) {
  auto args = transposed(2);
  args["transposed"] = true;
  EXPECT_EQ(counted("aten.convolution.default", {{{1, 8, 5, 5}}, {{8, 3, 3, 3}}}, args, {{{1, 6, 12, 12}}}),
            2 * (8 * 5 * 5) * (3 * 3 * 3));
  args["transposed"] = false;
  args["groups"] = 1;
  EXPECT_EQ(counted("aten.convolution.default", {{{1, 4, 9, 9}}, {{8, 4, 3, 3}}}, args, {{{1, 8, 9, 9}}}),
            2 * (8 * 9 * 9) * (4 * 3 * 3));
}

json einsum(const char* equation, const std::vector<int>& tensors, json path = nullptr) {
  return {{"equation", equation}, {"tensors", values(tensors)}, {"path", std::move(path)}};
}

TEST(GraphFlops, einsum_with_dots_without_an_arrow_and_with_an_order) {
  const char* op = "aten.einsum.default";
  EXPECT_EQ(counted(op, {{{5, 2, 3}}, {{5, 3, 4}}}, einsum("...ij,...jk->...ik", {0, 1}), {{{5, 2, 4}}}),
            2 * 5 * 2 * 3 * 4);
  EXPECT_EQ(counted(op, {{{5, 1, 2, 3}}, {{4, 3, 6}}}, einsum("...ij, ...jk -> ...ik", {0, 1}), {{{5, 4, 2, 6}}}),
            2 * 5 * 4 * 2 * 3 * 6)
      << "what dots stand for is broadcast";
  EXPECT_EQ(counted(op, {{{2, 3}}, {{3, 4}}}, einsum("ij,jk", {0, 1}), {{{2, 4}}}), 2 * 2 * 3 * 4);
  const Tensors three{{{2, 3}}, {{3, 4}}, {{4, 5}}};
  EXPECT_EQ(counted(op, three, einsum("ij,jk,kl->il", {0, 1, 2}), {{{2, 5}}}), 2 * (2 * 3 * 4 + 2 * 4 * 5));
  EXPECT_EQ(counted(op, three, einsum("ij,jk,kl->il", {0, 1, 2}, {1, 2, 0, 1}), {{{2, 5}}}),
            2 * (3 * 4 * 5 + 2 * 3 * 5));
  EXPECT_EQ(counted(op, {{{2, 3}}, {{4, 5}}}, einsum("ij,kl->il", {0, 1}), {{{2, 5}}}), 2 * 2 * 5)
      << "an axis of one operand alone is summed before the product";
  EXPECT_EQ(counted(op, {{{4, 4}}}, einsum("ii->i", {0}), {{{4}}}), 0);
}

TEST(GraphFlops, products_in_other_words) {
  const auto two = [](const char* a, const char* b) { return json{{a, value(0)}, {b, value(1)}}; };
  const json added = {{"self", value(2)}, {"batch1", value(0)}, {"batch2", value(1)}};
  const Tensors batches{{{3, 2, 4}}, {{3, 4, 5}}, {{2, 5}}};
  EXPECT_EQ(counted("aten.baddbmm.default", batches, added, {{{3, 2, 5}}}), 2 * 3 * 2 * 4 * 5);
  EXPECT_EQ(counted("aten.addbmm.default", batches, added, {{{2, 5}}}), 2 * 3 * 2 * 4 * 5);
  EXPECT_EQ(counted("aten.mv.default", {{{4, 6}}, {{6}}}, two("self", "vec"), {{{4}}}), 2 * 4 * 6);
  EXPECT_EQ(counted("aten.dot.default", {{{7}}, {{7}}}, two("self", "tensor"), {{{}}}), 14);
  auto tensordot = two("self", "other");
  tensordot.update({{"dims_self", {2, 1}}, {"dims_other", {0, 1}}});
  EXPECT_EQ(counted("aten.tensordot.default", {{{2, 3, 4}}, {{4, 3, 5}}}, tensordot, {{{2, 5}}}), 2 * 2 * 5 * 12);
}

TEST(GraphFlops, attention_in_one_call_and_a_whole_encoder_layer) {
  const json args = {{"query", value(0)}, {"key", value(1)}, {"value", value(2)}};
  EXPECT_EQ(
      counted("aten._scaled_dot_product_flash_attention_for_cpu.default",
              {{{2, 12, 10, 64}}, {{2, 12, 20, 64}}, {{2, 12, 20, 32}}}, args, {{{2, 12, 10, 32}}, {{2, 12, 10}}}),
      2 * 2 * 12 * 10 * 20 * (64 + 32));
  // 10 rows through (3 * 64 + 64 + 128 + 128) weights, and two products of 2 * 5 * 5 * 8
  const json layer = {{"src", value(0)},          {"qkv_weight", value(1)},   {"proj_weight", value(2)},
                      {"ffn_weight_1", value(3)}, {"ffn_weight_2", value(4)}, {"num_heads", 2}};
  EXPECT_EQ(counted("aten._transformer_encoder_layer_fwd.default",
                    {{{2, 5, 8}}, {{24, 8}}, {{8, 8}}, {{16, 8}}, {{8, 16}}}, layer, {{{2, 5, 8}}}),
            2 * (10 * (192 + 64 + 128 + 128) + 2 * 2 * 5 * 5 * 8));
}

TEST(GraphFlops, what_multiplies_no_matrices_adds_nothing_in_place_too) {
  for (const char* op : {"aten.relu_.default", "aten.cumprod.default", "aten.grid_sampler_2d.default",
                         "aten.fractional_max_pool2d.default", "torchvision.nms.default", "aten.__and__.Tensor"})
    EXPECT_EQ(counted(op, {{{4, 4}}}, {{"self", value(0)}}, {{{4, 4}}}), 0) << op;
}

TEST(GraphFlops, what_no_rule_knows_is_not_counted) {
  for (const char* op : {"aten.linalg_svd.default", "aten.cdist.default", "aten.fft_rfft.default",
                         "torchvision.deform_conv2d.default", "mine.attention.default", "complex64.mm.default"})
    EXPECT_EQ(counted(op, {{{4, 4}}}, {{"self", value(0)}}, {{{4, 4}}}), not_counted) << op;
  EXPECT_EQ(counted("aten.lstm.input", {{{}}}, {{"input", value(0)}, {"params", values({0})}}, {{{}}}), not_counted)
      << "a call that the rule does not know";
  EXPECT_THAT(names_of({{"cdist", 2}, {"linalg_svd", 1}}), ElementsAre("cdist (2 calls)", "linalg_svd"));
}

class Calls : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("strata_calls." + std::to_string(::getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  // calls.json of one linear layer (2 * 5 * 3 * 4 a call) and of one operation that is not counted.
  void write(const json& times, const char* other = "aten.cdist.default") const {
    auto all = json::parse(R"({"graph":1,"mode":"infer","parameters":[],"buffers":[],"constants":[],"updates":[],
      "values":[{"name":"a","dtype":"float32","shape":[5,3]},{"name":"b","dtype":"float32","shape":[4,3]},
                {"name":"c","dtype":"float32","shape":[5,4]},{"name":"d","dtype":"float32","shape":[5,4]}],
      "inputs":[{"name":"a","value":0},{"name":"b","value":1}], "outputs":[{"name":"last","value":3}],
      "nodes":[{"op":"aten.linear.default","name":"call0","args":{"input":{"value":0},"weight":{"value":1}},
                "outputs":[2],"module":"","module_type":"","source":""},
               {"name":"call1","args":{},"outputs":[3],"module":"","module_type":"","source":""}]})");
    all["nodes"][1]["op"] = other;
    all["times"] = times;
    std::ofstream(folder / "calls.json") << all;
  }
  fs::path folder;
};

TEST_F(Calls, are_counted_as_often_as_they_were_made) {
  write({3, 7});
  const auto found = flops_in(folder);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->total, 3 * 2 * 5 * 3 * 4);
  EXPECT_THAT((*found)->uncounted, ElementsAre(Pair("cdist", 7)));
}

TEST_F(Calls, without_a_count_for_each_are_refused) {
  for (const json& times : {json({3}), json({3, 0}), json("many"), json(nullptr)}) {
    write(times);
    const auto found = flops_in(folder);
    ASSERT_FALSE(found) << times;
    EXPECT_THAT(found.error().what, HasSubstr("one positive number for each of 2 nodes"));
  }
}

TEST_F(Calls, nothing_is_known_where_there_are_none) {
  const auto found = flops_in(folder);
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

}  // namespace
}  // namespace strata::graph
