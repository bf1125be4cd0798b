// SPDX-License-Identifier: Apache-2.0
// Which convolutions go to strata's own kernels: where they were measured to be faster, and can do all of the step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/compile.hpp"
#include "compiler/kernels.hpp"
#include "compiler/verify.hpp"
#include "compiler_graph.hpp"
#include "compiler_interpreter.hpp"

namespace strata::compiler {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Program chosen(const GraphBuilder& b, std::int64_t block = 8) {
  const auto graph = graph_of(b.document());
  EXPECT_TRUE(graph) << graph.error().what;
  const auto program = compile(*graph, {block, "plan_memory"});
  EXPECT_TRUE(program) << program.error().what;
  return *program;
}

// Kernels of convolutions and linear layers, in their order.
std::vector<std::string> kernels(const Program& program) {
  std::vector<std::string> all;
  for (const auto& step : program.steps)
    if (step.node.operation() == "conv2d" || step.node.operation() == "linear") all.emplace_back(name_of(step.kernel));
  return all;
}

// The second of two convolutions, which reads blocks, with what comes after it.
struct Layer {
  std::vector<int> image;  // batch, channels, height, width
  int channels = 64, kernel = 3, stride = 1, groups = 1;
  std::string activation = "";
};

std::string kernel_of(const Layer& layer, std::int64_t block = 8) {
  GraphBuilder b;
  auto smaller = layer.image;
  smaller[1] = 3;
  int y =
      b.conv(b.conv(b.input("x", smaller), layer.image[1]), layer.channels, layer.kernel, layer.stride, layer.groups);
  if (!layer.activation.empty()) y = b.act(y, layer.activation);
  b.output("out", y);
  return kernels(chosen(b, block)).at(1);
}

TEST(CompilerKernels, a_3x3_convolution_of_stride_1_is_winograds_where_its_tiles_are_filled) {
  for (const int block : {8, 16}) {
    EXPECT_EQ(kernel_of({.image = {1, 64, 56, 56}}, block), "winograd");
    EXPECT_EQ(kernel_of({.image = {1, 512, 7, 7}, .channels = 512}, block), "winograd");
    EXPECT_EQ(kernel_of({.image = {32, 256, 2, 2}, .channels = 256}, block), "winograd");
    EXPECT_EQ(kernel_of({.image = {1, 20, 14, 13}, .channels = 37}, block), "winograd");
  }
}

TEST(CompilerKernels, a_3x3_convolution_of_a_tiny_image_is_the_direct_kernels) {
  EXPECT_EQ(kernel_of({.image = {1, 512, 1, 1}, .channels = 512}), "direct");
  EXPECT_EQ(kernel_of({.image = {32, 512, 1, 1}, .channels = 512}), "direct");
  EXPECT_EQ(kernel_of({.image = {1, 256, 2, 2}, .channels = 256}), "direct");
}

TEST(CompilerKernels, a_3x3_convolution_of_stride_2_is_the_direct_kernels_up_to_14_pixels) {
  EXPECT_EQ(kernel_of({.image = {1, 64, 14, 14}, .stride = 2}), "direct");
  EXPECT_EQ(kernel_of({.image = {1, 64, 15, 14}, .stride = 2}), "library");
  EXPECT_EQ(kernel_of({.image = {1, 64, 28, 28}, .stride = 2}), "library");
}

TEST(CompilerKernels, one_pixel_and_groups_and_strides_of_3_stay_with_the_library) {
  EXPECT_EQ(kernel_of({.image = {1, 64, 14, 14}, .kernel = 1}), "library");
  EXPECT_EQ(kernel_of({.image = {1, 64, 2, 2}, .kernel = 1}), "library");
  EXPECT_EQ(kernel_of({.image = {1, 64, 2, 2}, .kernel = 5}), "library");
  EXPECT_EQ(kernel_of({.image = {1, 64, 14, 14}, .groups = 64}), "library");
  EXPECT_EQ(kernel_of({.image = {1, 64, 14, 14}, .groups = 4}), "library");
  EXPECT_EQ(kernel_of({.image = {1, 64, 14, 14}, .stride = 3}), "library");
}

TEST(CompilerKernels, the_first_layer_whose_image_is_not_in_blocks_stays_with_the_library) {
  GraphBuilder b;
  b.output("out", b.conv(b.input("x", {1, 3, 56, 56}), 64, 3));
  EXPECT_THAT(kernels(chosen(b)), ElementsAre("library"));
}

TEST(CompilerKernels, only_activations_that_keep_0_are_given_to_own_kernels) {
  for (const char* fused : {"relu", "relu6", "hardtanh"})
    EXPECT_EQ(kernel_of({.image = {1, 64, 14, 14}, .activation = fused}), "winograd") << fused;
  for (const char* other : {"hardswish", "sigmoid", "silu"})
    EXPECT_EQ(kernel_of({.image = {1, 64, 14, 14}, .activation = other}), "library") << other;
}

TEST(CompilerKernels, a_residual_sum_is_taken_along_and_stays_in_place) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 3, 14, 14}), 24);
  b.output("out", b.average(b.act(b.add(b.conv(x, 24, 3), x))));
  const auto program = chosen(b);
  EXPECT_THAT(kernels(program), ElementsAre("library", "winograd"));
  EXPECT_FALSE(program.same_storage(program.steps[1].node.outputs[0], program.steps[0].node.outputs[0]))
      << "the source is read after the first tiles are written";

  GraphBuilder c;
  const int first = c.conv(c.input("x", {1, 3, 14, 14}), 24), inner = c.conv(first, 24, 3);
  c.output("out", c.average(c.act(c.add(c.conv(inner, 24, 3), first))));
  const auto summed = chosen(c);
  EXPECT_THAT(kernels(summed), ElementsAre("library", "winograd", "winograd"));
  EXPECT_TRUE(summed.same_storage(summed.steps[2].node.outputs[0], summed.steps[0].node.outputs[0]));
}

TEST(CompilerKernels, a_product_or_a_sum_after_the_activation_stays_with_the_library) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 3, 14, 14}), 24);
  b.output("out", b.average(b.add(b.act(b.conv(x, 24, 3)), x)));
  EXPECT_THAT(kernels(chosen(b)), ElementsAre("library", "library"));
}

TEST(CompilerKernels, a_convolution_that_gives_one_pixel_is_a_linear_layer_of_as_many_rows_as_the_batch) {
  EXPECT_EQ(kernel_of({.image = {32, 2048, 1, 1}, .channels = 512, .kernel = 1}), "direct");
  EXPECT_EQ(kernel_of({.image = {32, 1024, 2, 2}, .channels = 2048, .kernel = 1, .stride = 2}), "direct");
  EXPECT_EQ(kernel_of({.image = {31, 2048, 1, 1}, .channels = 512, .kernel = 1}), "library");
  EXPECT_EQ(kernel_of({.image = {32, 1024, 2, 2}, .channels = 2048, .kernel = 1}), "library");
}

TEST(CompilerKernels, what_was_measured_goes_before_the_rules_where_it_can_run) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 3, 56, 56}), 64);
  b.output("out", b.conv(b.conv(x, 64, 3), 64, 3, 1, 2));
  const auto graph = graph_of(b.document());
  const auto by_rules = compile(*graph, {8, "plan_memory"});
  EXPECT_THAT(kernels(*by_rules), ElementsAre("library", "winograd", "library"));
  for (const auto kernel : {Kernel::library, Kernel::winograd, Kernel::direct}) {
    Kernels preferred;
    for (const auto& step : by_rules->steps) preferred[step.node.name] = kernel;
    // the first reads no blocks, the last has groups
    EXPECT_THAT(kernels(*compile(*graph, {8, "plan_memory", preferred})),
                ElementsAre("library", name_of(kernel), "library"));
  }
}

TEST(CompilerKernels, the_fastest_kernel_of_measured_times_is_taken_and_what_says_nothing_is_left_out) {
  const auto times = nlohmann::json::parse(
      R"({"a": {"library": 2.0, "direct": 1.5, "winograd": 1.75}, "b": {"library": 1}, "c": {"other": 1},
                                              "d": 7, "e": {"direct": "fast", "winograd": 3}})");
  EXPECT_EQ(fastest_kernels(times), (Kernels{{"a", Kernel::direct}, {"b", Kernel::library}, {"e", Kernel::winograd}}));
}

// The results must be those of the program before all passes.
void expect_same_results(const GraphBuilder& b, const Program& program) {
  const auto lowered = compile(*graph_of(b.document()), {program.block, "lower"});
  const auto got = results_of(program, 1), expected = results_of(*lowered, 1);
  for (const auto& [name, values] : expected)
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(got.at(name)[i], values[i], 1e-5 * (1 + std::abs(values[i])));
}

GraphBuilder classifier(int batch, int features) {
  GraphBuilder b;
  const int x = b.pool(b.conv(b.input("x", {batch, 3, 6, 6}), 12), true);
  b.output("out", b.linear(b.act(b.linear(b.flatten(x), features)), 10));
  return b;
}

TEST(CompilerKernels, a_linear_layer_of_many_rows_reads_the_image_that_was_flattened_for_it) {
  const auto b = classifier(32, 32);
  const auto program = chosen(b);
  EXPECT_THAT(kernels(program), ElementsAre("library", "direct", "library"));
  for (const auto& step : program.steps) EXPECT_NE(step.node.operation(), "strata.reorder");
  expect_same_results(b, program);
}

TEST(CompilerKernels, a_linear_layer_of_few_rows_or_of_odd_outputs_stays_with_the_library) {
  EXPECT_THAT(kernels(chosen(classifier(2, 32))), ElementsAre("library", "library", "library"));
  EXPECT_THAT(kernels(chosen(classifier(1, 32))), ElementsAre("library", "direct", "library"))
      << "one row, and the weights stay in the cache";
  EXPECT_THAT(kernels(chosen(classifier(32, 33))), ElementsAre("library", "library", "library"));
}

TEST(CompilerKernels, a_flattened_image_that_others_read_too_is_still_made) {
  GraphBuilder b;
  const int flat = b.flatten(b.conv(b.input("x", {32, 3, 3, 3}), 12));
  b.output("first", b.linear(flat, 16));
  b.output("second", b.linear(flat, 5));
  const auto program = chosen(b);
  EXPECT_THAT(kernels(program), ElementsAre("library", "direct", "library"));
  expect_same_results(b, program);
}

TEST(CompilerKernels, a_program_with_a_kernel_that_cannot_compute_its_step_is_refused) {
  GraphBuilder b;
  b.output("out", b.conv(b.conv(b.input("x", {1, 3, 56, 56}), 64), 64, 3, 2));
  auto program = chosen(b);
  program.steps[1].kernel = Kernel::direct;
  EXPECT_TRUE(verify(program)) << "slower than the library, and right";
  program.steps[1].kernel = Kernel::winograd;
  const auto refused = verify(program);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("which cannot compute it"));
}

}  // namespace
}  // namespace strata::compiler
