// SPDX-License-Identifier: Apache-2.0
// Each pass on the smallest network that shows what it does, and on the nearest one where it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile.hpp"
#include "compiler/pass.hpp"
#include "compiler_graph.hpp"
#include "compiler_interpreter.hpp"

namespace strata::compiler {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The program after a pass. It must compute what the lowered one does.
Program after(const std::string& pass, const GraphBuilder& b, std::int64_t block = 8) {
  const auto graph = graph_of(b.document());
  EXPECT_TRUE(graph) << graph.error().what;
  const auto program = compile(*graph, {block, pass}), lowered = compile(*graph, {block, "lower"});
  EXPECT_TRUE(program) << program.error().what;
  const auto got = results_of(*program, 1), expected = results_of(*lowered, 1);
  for (const auto& [name, values] : expected)
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(got.at(name)[i], values[i], 1e-5 * (1 + std::abs(values[i])));
  return *program;
}

// What is executed, with posts: "conv2d+relu"; steps of load in front as "load:strata.scale_weight".
std::vector<std::string> calls(const Program& program) {
  std::vector<std::string> all;
  for (const auto& step : program.steps) {
    if (step.view) continue;
    all.push_back((step.when == When::load ? "load:" : "") + step.node.operation());
    for (const auto& post : step.posts) all.back() += "+" + post.operation;
  }
  return all;
}

TEST(CompilerPasses, lowering_leaves_out_dead_code_and_what_changes_nothing) {
  GraphBuilder b;
  const int x = b.input("x", {2, 3, 4, 4});
  const int read_twice = b.act(b.act(x), "dropout");
  b.act(b.conv(read_twice, 5), "sigmoid");
  b.output("out", b.flatten(read_twice));
  const auto program = after("lower", b);
  EXPECT_THAT(calls(program), ElementsAre("relu"));
  ASSERT_EQ(program.steps.size(), 2u);
  EXPECT_TRUE(program.steps[1].view);
  EXPECT_TRUE(program.same_storage(program.steps[0].node.outputs[0], program.graph.outputs[0].value));
}

TEST(CompilerPasses, an_output_that_is_an_input_or_another_output_is_copied) {
  GraphBuilder b;
  const int x = b.input("x", {1, 2, 2, 2});
  const int y = b.act(x);
  b.output("same", x);
  b.output("first", y);
  b.output("second", b.flatten(y));
  EXPECT_THAT(calls(after("plan_memory", b)), ElementsAre("relu", "strata.copy", "strata.copy"));
}

TEST(CompilerPasses, an_einsum_of_two_tensors_is_a_product_of_matrices_with_the_permutations_that_it_needs) {
  const auto lowered = [](const std::string& equation, std::vector<int> right, std::vector<int> result) {
    GraphBuilder b;
    const int x = b.input("x", {2, 3, 4, 5}), y = b.input("y", std::move(right));
    b.output("out", b.node("aten.einsum.default",
                           {{"equation", equation}, {"tensors", {{"values", {x, y}}}}, {"path", nullptr}}, {result}));
    const auto program = compile(*graph_of(b.document()), {.block = 8});
    EXPECT_TRUE(program) << program.error().what;
    return calls(*program);
  };
  EXPECT_THAT(lowered("bhij, bhjd -> bhid", {2, 3, 5, 6}, {2, 3, 4, 6}), ElementsAre("matmul"));
  EXPECT_THAT(lowered("bhid,bhjd->bhij", {2, 3, 6, 5}, {2, 3, 4, 6}), ElementsAre("permute", "matmul"));
  EXPECT_THAT(lowered("bhij,bhjd->dbih", {2, 3, 5, 6}, {6, 2, 4, 3}), ElementsAre("matmul", "permute"));
  EXPECT_THAT(lowered("bhij,bhjd->bid", {2, 3, 5, 6}, {2, 4, 6}), ElementsAre("permute", "matmul"));
  EXPECT_THAT(lowered("bhij,bhjd->bh", {2, 3, 5, 6}, {2, 3}), ElementsAre("einsum"));  // sums within a tensor
}

TEST(CompilerPasses, what_depends_on_weights_alone_is_computed_at_load) {
  GraphBuilder b;
  const int x = b.input("x", {1, 4, 2, 2});
  const int weight = b.mul(b.parameter("w", {4, 4, 1, 1}), b.parameter("s", {4, 1, 1, 1}));
  b.output("out", b.conv_with(x, weight, -1, 1, 1));
  EXPECT_THAT(calls(after("fold_constants", b)), ElementsAre("load:mul", "conv2d"));
}

TEST(CompilerPasses, an_output_that_depends_on_weights_alone_is_still_written_by_the_run) {
  GraphBuilder b;
  b.input("x", {1, 4, 2, 2});
  b.output("out", b.act(b.act(b.parameter("w", {4, 4}))));
  EXPECT_THAT(calls(after("fold_constants", b)), ElementsAre("load:relu", "relu"));
}

TEST(CompilerPasses, a_batch_norm_goes_into_the_convolution_before_it_and_into_a_linear_layer) {
  GraphBuilder b;
  const int x = b.norm(b.conv(b.input("x", {2, 3, 4, 4}), 5, 3, 1, 1, true));
  b.output("out", b.norm(b.linear(b.mean(b.norm(b.conv(x, 5, 3, 1, 5))), 7)));
  const auto program = after("fold_batch_norm", b);
  EXPECT_THAT(calls(program),
              ElementsAre("load:strata.scale_weight", "load:strata.shift_bias", "load:strata.scale_weight",
                          "load:strata.shift_bias", "load:strata.scale_weight", "load:strata.shift_bias", "conv2d",
                          "conv2d", "mean", "linear"));
  EXPECT_THAT(program.steps[6].graph_nodes, ElementsAre("conv2d_0", "batch_norm_1"));
}

TEST(CompilerPasses, a_batch_norm_before_a_convolution_becomes_a_scale_and_a_shift_with_the_activation) {
  GraphBuilder b;
  const int x = b.input("x", {1, 4, 2, 2});
  b.output("out", b.conv(b.act(b.norm(b.cat({x, x}))), 4));
  EXPECT_THAT(calls(after("fuse_activations", b)), ElementsAre("load:strata.scale_weight", "load:strata.shift_bias",
                                                               "cat", "strata.scale_shift+relu", "conv2d"));
}

TEST(CompilerPasses, a_batch_norm_is_not_folded_into_a_convolution_that_somebody_else_reads) {
  GraphBuilder b;
  const int conv = b.conv(b.input("x", {1, 4, 2, 2}), 4);
  b.output("out", b.norm(conv));
  b.output("raw", conv);
  EXPECT_THAT(calls(after("fold_batch_norm", b)),
              ElementsAre("load:strata.scale_weight", "load:strata.shift_bias", "conv2d", "strata.scale_shift"));
}

TEST(CompilerPasses, an_activation_is_fused_unless_its_operand_has_another_reader) {
  GraphBuilder b;
  const int conv = b.conv(b.act(b.conv(b.input("x", {1, 4, 2, 2}), 4), "hardtanh"), 4);
  b.output("out", b.add(b.act(conv, "sigmoid"), conv));
  const auto program = after("fuse_activations", b);
  EXPECT_THAT(calls(program), ElementsAre("conv2d+clamp", "conv2d", "sigmoid", "add"));
  EXPECT_EQ(program.steps[0].posts[0].alpha, -0.5);
  EXPECT_EQ(program.steps[0].posts[0].beta, 0.7);
}

TEST(CompilerPasses, a_residual_sum_and_its_activation_become_posts_of_the_later_layer) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 4, 2, 2}), 4);
  const int body = b.norm(b.conv(b.act(b.conv(x, 4)), 4)), side = b.norm(b.conv(x, 4));
  b.output("out", b.act(b.add(body, side)));
  const auto program = after("remove_dead", b);
  EXPECT_THAT(calls(program),
              ElementsAre("load:strata.scale_weight", "load:strata.shift_bias", "load:strata.scale_weight",
                          "load:strata.shift_bias", "conv2d", "conv2d+relu", "conv2d", "conv2d+add+relu"));
  EXPECT_THAT(program.steps.back().graph_nodes, ElementsAre("conv2d_5", "batch_norm_6", "add_7", "relu_8"));
}

TEST(CompilerPasses, an_activation_before_the_sum_stays_before_it) {
  GraphBuilder b;
  const int x = b.act(b.conv(b.input("x", {1, 4, 2, 2}), 4), "sigmoid");
  b.output("out", b.act(b.add(b.act(b.conv(x, 4), "silu"), x)));
  EXPECT_THAT(calls(after("fuse_residual_sums", b)), ElementsAre("conv2d+sigmoid", "conv2d+silu+add+relu"));
}

TEST(CompilerPasses, a_sum_that_broadcasts_or_doubles_a_value_is_no_post) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 4, 2, 2}), 4);
  const int doubled = b.conv(x, 4);
  const int sum = b.add(doubled, doubled);
  const int small = b.average(x);
  b.output("out", b.add(b.conv(sum, 4), small));
  EXPECT_THAT(calls(after("fuse_residual_sums", b)),
              ElementsAre("conv2d", "conv2d", "add", "adaptive_avg_pool2d", "conv2d", "add"));
}

TEST(CompilerPasses, a_sum_of_two_inputs_has_no_layer_to_go_into) {
  GraphBuilder b;
  b.output("out", b.act(b.add(b.input("x", {1, 3, 2, 2}), b.input("y", {1, 3, 2, 2}))));
  EXPECT_THAT(calls(after("fuse_residual_sums", b)), ElementsAre("add+relu"));
}

TEST(CompilerPasses, a_sum_is_written_over_the_other_operand_where_that_dies) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 3, 2, 2}), 4);
  const int sum = b.act(b.add(b.conv(b.act(x), 4), x));
  b.output("out", b.conv(sum, 4));
  const auto program = after("in_place", b);
  EXPECT_THAT(calls(program), ElementsAre("conv2d", "relu", "conv2d+add+relu", "conv2d", "strata.reorder"));
  EXPECT_TRUE(program.same_storage(program.steps[2].node.outputs[0], program.steps[2].posts[0].value));
  EXPECT_FALSE(program.same_storage(program.steps[1].node.outputs[0], x)) << "x is still read by the sum";
}

TEST(CompilerPasses, nothing_is_written_over_what_is_read_later) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 4, 2, 2}), 4);
  const int sum = b.add(b.conv(b.act(x), 4), x);
  b.output("out", b.conv(b.cat({sum, x}), 4));
  const auto program = after("in_place", b);
  for (const auto& step : program.steps) {
    if (step.view) continue;
    EXPECT_TRUE(!program.same_storage(step.node.outputs[0], x) || step.node.outputs[0] == x) << where(step);
  }
}

TEST(CompilerPasses, an_unknown_pass_is_refused_with_all_names) {
  GraphBuilder b;
  b.output("out", b.act(b.input("x", {1})));
  const auto got = compile(*graph_of(b.document()), {.stop_after = "fold_batchnorm"});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what,
              HasSubstr("fold_constants, fold_batch_norm, fuse_activations, fuse_residual_sums, fuse_gradients, "
                        "remove_dead, "
                        "lower_precision, propagate_layouts, choose_kernels, recompute, in_place, plan_memory"));
  EXPECT_EQ(got.error().hint, "did you mean fold_batch_norm?");
  EXPECT_EQ(got.error().exit, Exit::usage);
  EXPECT_FALSE(compile(*graph_of(b.document()), {.block = 4}));
}

TEST(CompilerPasses, an_empty_batch_is_a_program_without_bytes) {
  GraphBuilder b;
  b.output("out", b.linear(b.mean(b.act(b.norm(b.conv(b.input("x", {0, 4, 3, 3}), 5, 3)))), 2));
  const auto program = after("plan_memory", b);
  EXPECT_EQ(program.arena_bytes, 0);
}

}  // namespace
}  // namespace strata::compiler
