// SPDX-License-Identifier: Apache-2.0
// Training steps through the compiler: what is made, fused and ordered. That steps compute what eager computes is
// tests/levels/test_graph_train.py's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compile.hpp"
#include "compiler/training.hpp"
#include "compiler/verify.hpp"
#include "compiler_graph.hpp"

namespace strata::compiler {
namespace {
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

Result<graph::TrainingGraph> step_of(const json& document) {
  const auto network = graph_of(document);
  if (!network) throw std::runtime_error(network.error().what);
  return graph::differentiate(*network, graph::Loss::cross_entropy);
}

Program trained(const GraphBuilder& b, const std::string& stop_after = "", std::int64_t block = 8) {
  const auto step = step_of(b.document());
  if (!step) throw std::runtime_error(step.error().what);
  const auto program = compile(*step, {block, stop_after});
  if (!program) throw std::runtime_error(program.error().what);
  return *program;
}

std::vector<std::string> operations_of(const Program& program) {
  std::vector<std::string> all;
  for (const auto& step : program.steps) {
    if (step.view) continue;
    all.push_back(step.node.operation());
    for (const auto& post : step.posts) all.back() += "+" + post.operation;
  }
  return all;
}

const Step& the(const Program& program, const std::string& operation, std::size_t which = 0) {
  for (const auto& step : program.steps)
    if (step.node.operation() == operation && which-- == 0) return step;
  throw std::runtime_error("there is no step " + operation);
}

// A residual block: conv - norm - relu - conv - norm, + shortcut, relu; then scores.
GraphBuilder residual() {
  GraphBuilder b(true);
  const int x = b.act(b.norm(b.conv(b.input("x", {2, 3, 6, 6}), 8, 3)));
  const int y = b.norm(b.conv(b.act(b.norm(b.conv(x, 8, 3))), 8, 3));
  b.output("scores", b.linear(b.mean(b.act(b.add(y, x))), 4));
  return b;
}

TEST(CompilerTraining, a_batch_norm_takes_the_sum_and_the_activation_behind_it_forward_and_backward) {
  const auto program = trained(residual());
  EXPECT_THAT(operations_of(program),
              IsSupersetOf({"strata.batch_norm_train+relu", "strata.batch_norm_train+add+relu"}));
  EXPECT_THAT(operations_of(program), Not(IsSupersetOf({"relu"})));
  EXPECT_THAT(operations_of(program), Not(IsSupersetOf({"strata.clamp_backward"})));
  // the last block's masked gradient goes to the shortcut too; the first norm's gradient takes the sum of both ways
  const auto& last = the(program, "strata.batch_norm_backward", 0);
  EXPECT_TRUE(last.node.flag("gives_masked"));
  EXPECT_EQ(program.value(last.node.outputs.back()).shape, (graph::Shape{2, 8, 6, 6}));
  const auto& first = the(program, "strata.batch_norm_backward", 2);
  EXPECT_TRUE(first.node.is_tensor("summand"));
  EXPECT_FALSE(first.node.flag("gives_masked"));
  EXPECT_EQ(first.node.find("trains")->plain, json({true, true}));
}

TEST(CompilerTraining, the_labels_are_no_input_the_loss_is_the_only_output_and_every_change_is_an_effect) {
  const auto program = trained(residual());
  ASSERT_EQ(program.graph.inputs.size(), 1U);
  ASSERT_EQ(program.graph.outputs.size(), 1U);
  EXPECT_EQ(program.graph.outputs[0].name, "loss");
  std::vector<std::string> changed;
  for (const auto& one : program.graph.updates) {
    changed.push_back(one.name);
    EXPECT_EQ(program.place(one.value).bytes, 0) << one.name;
  }
  std::vector<std::string> all;
  for (const auto* list : {&program.graph.parameters, &program.graph.buffers})
    for (const auto& one : *list) all.push_back(one.name);
  EXPECT_THAT(changed, ::testing::UnorderedElementsAreArray(all));
}

TEST(CompilerTraining, phases_come_in_their_order) {
  const auto program = trained(residual());
  EXPECT_TRUE(std::is_sorted(program.steps.begin(), program.steps.end(),
                             [](const auto& a, const auto& b) { return a.phase < b.phase; }));
  EXPECT_EQ(the(program, "strata.nll_loss").phase, Phase::loss);
  EXPECT_EQ(the(program, "strata.train_convolution").phase, Phase::backward);
}

TEST(CompilerTraining, the_first_layer_reads_the_image_as_it_is_given) {
  const auto program = trained(residual());
  const auto& first = the(program, "strata.train_convolution", 2);
  EXPECT_EQ(program.place(first.node.tensor("source")).layout, Layout::plain);
  EXPECT_EQ(program.place(first.node.tensor("gradient")).layout, Layout::blocked);
}

TEST(CompilerTraining, the_gradient_of_a_linear_layer_goes_into_its_update_where_the_batch_is_small) {
  const auto updates = [](int batch, Target target) {
    GraphBuilder b(true);
    b.output("scores", b.linear(b.input("x", {batch, 6}), 5));
    return operations_of(*compile(*step_of(b.document()), {.target = target}));
  };
  EXPECT_THAT(updates(128, Target::cpu), IsSupersetOf({"strata.sgd_of_product", "strata.sgd"}));  // weight and bias
  EXPECT_THAT(updates(128, Target::cpu), Not(IsSupersetOf({"mm"})));
  EXPECT_THAT(updates(129, Target::cpu), IsSupersetOf({"mm", "strata.sgd", "strata.sgd"}));
  EXPECT_THAT(updates(128, Target::cuda), IsSupersetOf({"mm", "strata.sgd", "strata.sgd"}));
}

TEST(CompilerTraining, a_gradient_that_is_a_product_with_another_parameter_is_computed_before_any_update) {
  const auto product = [](GraphBuilder& b, int left, int right) {
    return b.node("aten.mm.default", {{"self", b.ref(left)}, {"mat2", b.ref(right)}},
                  {{b.shape(left)[0], b.shape(right)[1]}});
  };
  GraphBuilder b(true);
  const int inner = product(b, b.parameter("column", {6, 1}), b.parameter("row", {1, 4}));
  b.output("scores", product(b, b.input("x", {3, 6}), inner));
  const auto program = trained(b);
  EXPECT_EQ(std::ranges::count(operations_of(program), "strata.sgd"), 2);
}

TEST(CompilerTraining, a_weight_that_two_layers_share_is_updated_once_behind_its_last_reader) {
  GraphBuilder b(true);
  const int weight = b.parameter("shared.weight", {4, 4, 3, 3});
  const int x = b.input("x", {2, 4, 5, 5});
  const int y = b.conv_with(b.act(b.conv_with(x, weight, -1, 1, 1)), weight, -1, 1, 1);
  b.output("scores", b.mean(y));
  const auto program = trained(b);
  EXPECT_THAT(operations_of(program), Not(IsSupersetOf({"strata.train_convolution"})));
  EXPECT_EQ(std::ranges::count(operations_of(program), "strata.sgd"), 1);
  EXPECT_EQ(program.steps.back().node.operation(), "strata.sgd");
}

TEST(CompilerTraining, clipped_gradients_are_all_known_before_any_parameter_changes) {
  auto step = *step_of(residual().document());
  step.clip_norm = 0.5;
  const auto program = *compile(step);
  const auto& steps = program.steps;
  const auto clip =
      std::ranges::find_if(steps, [](const auto& one) { return one.node.operation() == "strata.clip_gradients"; });
  ASSERT_NE(clip, steps.end());
  EXPECT_EQ(clip->node.tensors("gradients").size(), step.gradients.size());
  EXPECT_EQ(std::count_if(clip, steps.end(), [](const auto& one) { return one.node.operation() == "strata.sgd"; }),
            static_cast<std::ptrdiff_t>(step.gradients.size()));
  EXPECT_THAT(operations_of(program),
              Not(::testing::Contains(::testing::AnyOf("strata.train_convolution", "strata.sgd_of_product"))));
  const auto refused = compile(step, {.target = Target::cuda});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("do not clip gradients"));
}

TEST(CompilerTraining, a_3x3_convolution_and_the_gradient_of_its_input_are_winograds_where_packing_weights_pays) {
  const auto kernels = [](const std::vector<int>& image, int channels, int stride = 1, int groups = 1) {
    GraphBuilder b(true);
    const int x = b.conv(b.input("x", {image[0], 3, image[1], image[1]}), channels);
    b.output("scores", b.mean(b.conv(x, channels, 3, stride, groups)));
    const auto program = trained(b);
    return std::pair(the(program, "conv2d", 1).kernel, the(program, "strata.convolution_backward_data").kernel);
  };
  const auto library = std::pair(Kernel::library, Kernel::library);
  EXPECT_EQ(kernels({8, 24}, 64), std::pair(Kernel::winograd, Kernel::winograd));
  EXPECT_EQ(kernels({8, 24}, 64, 2), library);
  EXPECT_EQ(kernels({8, 24}, 64, 1, 2), library);
  EXPECT_EQ(kernels({32, 4}, 128), std::pair(Kernel::winograd, Kernel::winograd));
  EXPECT_EQ(kernels({32, 2}, 256), library) << "there is more to pack than to multiply";
}

TEST(CompilerTraining, a_clamp_keeps_its_result_and_not_its_operand) {
  GraphBuilder b(true);
  b.output("scores", b.mean(b.act(b.norm(b.conv(b.input("x", {2, 4, 5, 5}), 8, 3)), "hardtanh")));
  const auto program = trained(b);
  EXPECT_THAT(operations_of(program), IsSupersetOf({"strata.batch_norm_train+clamp"}));
  const auto& backward = the(program, "strata.batch_norm_backward");
  EXPECT_EQ(backward.node.tensor("result"), the(program, "strata.batch_norm_train").node.outputs.front());
  EXPECT_EQ(backward.node.number("low"), -0.5);
  EXPECT_EQ(backward.node.number("high"), 0.7);
}

TEST(CompilerTraining, an_activation_that_the_batch_norms_kernel_lacks_stays_a_step) {
  GraphBuilder b(true);
  b.output("scores", b.mean(b.act(b.norm(b.conv(b.input("x", {2, 4, 5, 5}), 8, 3)), "hardswish")));
  EXPECT_THAT(operations_of(trained(b)), IsSupersetOf({"strata.batch_norm_train", "hardswish", "hardswish_backward"}));
}

// Joined with something that cannot be cut in blocks, so that the pooling's gradient comes plain where its result is
// blocked.
TEST(CompilerTraining, a_pooling_and_a_dropout_are_differentiated_in_the_layout_in_which_they_ran) {
  GraphBuilder b(true);
  const int x = b.conv(b.input("x", {2, 4, 8, 8}), 8, 3);
  const int pooled = b.act(b.pool(x, true), "dropout");
  const int joined = b.cat({b.conv(pooled, 5), pooled, b.conv(pooled, 3)});
  b.output("scores", b.mean(b.conv(joined, 8, 3)));
  const auto program = trained(b);
  for (const char* backward : {"strata.max_pool_backward", "strata.dropout_backward"}) {
    const auto& step = the(program, backward);
    const auto& forward = the(program, std::string(backward) == "strata.max_pool_backward" ? "strata.max_pool_train"
                                                                                           : "strata.dropout_train");
    EXPECT_EQ(program.place(step.node.tensor("gradient")).layout, program.place(forward.node.outputs.front()).layout)
        << backward;
  }
}

TEST(CompilerTraining, frozen_parameters_have_no_update) {
  auto b = residual();
  auto document = b.document();
  for (auto& one : document["parameters"])
    if (one["name"].get<std::string>().starts_with("conv")) one["frozen"] = true;
  const auto program = compile(*step_of(document));
  ASSERT_TRUE(program) << program.error().what;
  for (const auto& one : program->graph.updates) EXPECT_FALSE(one.name.starts_with("conv")) << one.name;
}

TEST(CompilerTraining, the_verifier_sees_a_parameter_that_is_read_after_its_update) {
  auto program = trained(residual());
  // the first gradient of a weight moves in front of the gradient of its layer's input
  const auto at = std::ranges::find_if(program.steps,
                                       [](const auto& s) { return s.node.operation() == "strata.train_convolution"; });
  const auto before = std::ranges::find_if(
      program.steps, [](const auto& s) { return s.node.operation() == "strata.convolution_backward_data"; });
  ASSERT_EQ(at->node.tensor("weight"), before->node.tensor("weight"));
  ASSERT_LT(before, at);
  std::rotate(before, at, at + 1);
  const auto right = verify(program, false);
  ASSERT_FALSE(right);
  EXPECT_THAT(right.error().what, HasSubstr("after this step of training has changed it"));
}

TEST(CompilerTraining, on_a_gpu_nothing_lies_in_blocks_and_no_layer_writes_over_what_it_adds) {
  const auto step = step_of(residual().document());
  ASSERT_TRUE(step) << step.error().what;
  const auto program = compile(*step, {16, "", {}, Target::cuda});
  ASSERT_TRUE(program) << program.error().what;
  for (const auto& one : program->places) EXPECT_NE(one.layout, Layout::blocked);
  for (const auto& one : program->steps)
    for (const auto& post : one.posts)
      if (post.value >= 0 && one.node.operation() != "add") {
        EXPECT_FALSE(program->same_storage(post.value, one.node.outputs.front()));
      }
  EXPECT_EQ(program->place(the(*program, "conv2d").node.outputs.front()).layout, Layout::channels_last);
}

TEST(CompilerTraining, random_networks_get_through_all_passes_and_the_verifier) {
  unsigned trained = 0;
  for (unsigned seed = 0; seed < random_networks(300); ++seed) {
    const auto document = RandomGraph(seed, true).make_scores();
    const auto step = step_of(document);
    if (!step) continue;  // an operation without a backward rule
    ++trained;
    for (const auto& [block, target, type] : {std::tuple(8, Target::cpu, graph::Type::float32),
                                              {16, Target::cpu, graph::Type::float32},
                                              {16, Target::cpu, graph::Type::bfloat16},
                                              {16, Target::cuda, graph::Type::float32},
                                              {16, Target::cuda, graph::Type::bfloat16}}) {
      const auto program = compile(*step, {block, "", {}, target, {}, type});  // compile() verifies
      ASSERT_TRUE(program) << "seed " << seed << ": " << program.error().what;
      EXPECT_FALSE(program->graph.updates.empty());
    }
  }
  EXPECT_GT(trained, random_networks(300) / 2);
}

}  // namespace
}  // namespace strata::compiler
