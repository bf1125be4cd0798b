// SPDX-License-Identifier: Apache-2.0
// Programs in bfloat16: which steps read and write it, and where they are converted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile.hpp"
#include "compiler_graph.hpp"
#include "compiler_interpreter.hpp"

namespace strata::compiler {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Program in_bfloat16(const GraphBuilder& b, Target target = Target::cpu) {
  const auto graph = graph_of(b.document());
  EXPECT_TRUE(graph) << graph.error().what;
  const auto program = compile(*graph, {.block = 8, .target = target, .type = graph::Type::bfloat16});
  EXPECT_TRUE(program) << program.error().what;
  return *program;
}

// "conv2d bfloat16" of each step of the run that is no view.
std::vector<std::string> types(const Program& program) {
  std::vector<std::string> all;
  for (const auto& step : program.steps)
    if (!step.view && step.when == When::run)
      all.push_back(step.node.operation() + " " +
                    std::string(graph::name_of(program.value(step.node.outputs.front()).type)));
  return all;
}

TEST(CompilerPrecision, what_the_library_computes_reads_and_writes_bfloat16_between_one_conversion_at_each_end) {
  GraphBuilder b;
  const int x = b.act(b.norm(b.conv(b.input("x", {2, 3, 8, 8}), 16, 3)));
  const int y = b.act(b.add(b.conv(x, 16, 3), x));
  b.output("out", b.linear(b.flatten(b.average(b.pool(y, true))), 5));
  const auto program = in_bfloat16(b);
  EXPECT_THAT(types(program),
              ElementsAre("strata.cast bfloat16", "conv2d bfloat16", "conv2d bfloat16", "max_pool2d bfloat16",
                          "adaptive_avg_pool2d bfloat16", "linear bfloat16", "strata.cast float32"));
  for (const auto* list : {&program.graph.inputs, &program.graph.parameters, &program.graph.outputs})
    for (const auto& one : *list) EXPECT_EQ(program.value(one.value).type, graph::Type::float32) << one.name;
}

TEST(CompilerPrecision, what_a_program_keeps_for_activations_is_half) {
  GraphBuilder b;
  const int x = b.act(b.conv(b.input("x", {2, 8, 8, 8}), 16, 3));
  b.output("out", b.mean(b.act(b.conv(x, 16, 3))));
  const auto half = in_bfloat16(b), whole = *compile(*graph_of(b.document()), {.block = 8});
  EXPECT_LT(half.arena_bytes, whole.arena_bytes);
  for (std::size_t v = 0; v < whole.graph.values.size(); ++v)
    if (whole.places[v].in == Place::In::arena && !whole.graph.values[v].name.starts_with("mean")) {
      EXPECT_EQ(2 * half.places[v].bytes, whole.places[v].bytes) << whole.graph.values[v].name;
    }
}

TEST(CompilerPrecision, a_conversion_changes_the_layout_along_with_the_type) {
  GraphBuilder b;
  b.output("out", b.conv(b.act(b.input("x", {1, 16, 6, 6}), "exp"), 16, 3));
  EXPECT_THAT(types(in_bfloat16(b)),
              ElementsAre("exp float32", "strata.cast bfloat16", "conv2d bfloat16", "strata.cast float32"));
}

TEST(CompilerPrecision, a_value_that_several_read_is_converted_once_for_each_type) {
  GraphBuilder b;
  const int x = b.act(b.input("x", {1, 16, 6, 6}), "exp");
  const int y = b.add(b.conv(x, 16), b.conv(x, 16));
  b.output("first", b.act(y, "exp"));
  b.output("second", y);
  EXPECT_THAT(types(in_bfloat16(b)), ElementsAre("exp float32", "strata.cast bfloat16", "conv2d bfloat16",
                                                 "conv2d bfloat16", "strata.cast float32", "exp float32"));
}

TEST(CompilerPrecision, what_only_moves_elements_keeps_their_type) {
  GraphBuilder b;
  const int x = b.input("x", {2, 8, 3, 5});
  b.output("moved", b.permute(x, {0, 3, 1, 2}));
  b.output("of_layers", b.permute(b.conv(x, 8), {3, 0, 1, 2}));
  EXPECT_THAT(types(in_bfloat16(b)), ElementsAre("strata.reorder float32", "strata.cast bfloat16", "conv2d bfloat16",
                                                 "strata.reorder bfloat16", "permute bfloat16", "strata.cast float32"));
}

TEST(CompilerPrecision, on_a_gpu_layers_alone_are_in_bfloat16) {
  GraphBuilder b;
  const int x = b.act(b.conv(b.input("x", {2, 3, 8, 8}), 16, 3));
  b.output("out", b.linear(b.mean(b.pool(b.act(x, "sigmoid"), true)), 5));
  EXPECT_THAT(types(in_bfloat16(b, Target::cuda)),
              ElementsAre("strata.cast bfloat16", "conv2d bfloat16", "strata.cast float32", "max_pool2d float32",
                          "mean float32", "strata.cast bfloat16", "linear bfloat16", "strata.cast float32"));
}

TEST(CompilerPrecision, stratas_own_kernels_are_for_float32) {
  GraphBuilder b;
  b.output("out", b.conv(b.conv(b.input("x", {1, 64, 56, 56}), 64, 3), 64, 3));
  const auto kernels = [](const Program& program) {
    return std::count_if(program.steps.begin(), program.steps.end(),
                         [](const Step& step) { return step.kernel != Kernel::library; });
  };
  EXPECT_GT(kernels(*compile(*graph_of(b.document()), {.block = 8})), 0);
  EXPECT_EQ(kernels(in_bfloat16(b)), 0);
}

Program trained_in_bfloat16(const GraphBuilder& b, Target target = Target::cpu) {
  const auto graph = graph_of(b.document());
  EXPECT_TRUE(graph) << graph.error().what;
  const auto step = graph::differentiate(*graph, graph::Loss::cross_entropy);
  EXPECT_TRUE(step) << step.error().what;
  const auto program = compile(*step, {.block = 8, .target = target, .type = graph::Type::bfloat16});
  EXPECT_TRUE(program) << program.error().what;
  return *program;
}

TEST(CompilerPrecision, a_training_step_rounds_what_layers_and_their_gradients_read_and_nothing_that_it_writes) {
  GraphBuilder b(true);
  const int x = b.act(b.norm(b.conv(b.input("x", {2, 3, 8, 8}), 16, 3)));
  b.output("scores", b.linear(b.flatten(b.average(b.act(b.norm(b.conv(x, 16, 3))))), 5));
  for (const auto target : {Target::cpu, Target::cuda}) {
    const auto program = trained_in_bfloat16(b, target);
    int layers = 0;
    for (const auto& step : program.steps) {
      const auto name = step.node.operation();
      if (name == "strata.cast") continue;
      for (const int output : step.node.outputs) EXPECT_EQ(program.value(output).type, graph::Type::float32) << name;
      const bool layer = name == "conv2d" || name == "linear" || name.starts_with("strata.convolution_backward") ||
                         name == "strata.train_convolution" || name == "mm";
      layers += layer;
      for (const int value : operands_of(step))
        if (program.place(value).in != Place::In::weights) {
          EXPECT_EQ(program.value(value).type, layer ? graph::Type::bfloat16 : graph::Type::float32) << name;
        }
    }
    EXPECT_GE(layers, 7);  // three forward, two of weights, one of the second convolution's input, one of the linear's
    for (const auto& one : program.graph.parameters)
      EXPECT_EQ(program.value(one.value).type, graph::Type::float32) << one.name;
  }
}

TEST(CompilerPrecision, what_a_convolution_reads_is_rounded_once_for_both_phases) {
  GraphBuilder b(true);
  const int x = b.act(b.norm(b.conv(b.input("x", {2, 3, 8, 8}), 16, 3)));
  b.output("scores", b.linear(b.mean(b.act(b.norm(b.conv(x, 16, 3)))), 5));
  const auto program = trained_in_bfloat16(b);
  std::map<int, int> casts;
  for (const auto& step : program.steps)
    if (step.node.operation() == "strata.cast") ++casts[operands_of(step).front()];
  for (const auto& [value, count] : casts) EXPECT_EQ(count, 1) << program.value(value).name;
  EXPECT_GE(casts.size(), 5U);
}

TEST(CompilerPrecision, the_verifier_refuses_a_training_step_that_writes_another_type_than_float32) {
  GraphBuilder b(true);
  b.output("scores", b.linear(b.mean(b.act(b.norm(b.conv(b.input("x", {2, 8, 8, 8}), 16, 3)))), 5));
  auto program = trained_in_bfloat16(b);
  for (const auto& step : program.steps)
    if (step.node.operation() == "conv2d") {
      const auto written = static_cast<std::size_t>(step.node.outputs.front());
      program.graph.values[written].type = graph::Type::bfloat16;
      program.places[written].bytes /= 2;
    }
  const auto right = verify(program);
  ASSERT_FALSE(right);
  EXPECT_THAT(right.error().what, HasSubstr("bfloat16"));
}

TEST(CompilerPrecision, other_types_are_refused) {
  GraphBuilder b;
  b.output("out", b.conv(b.input("x", {1, 8, 4, 4}), 8));
  const auto half = compile(*graph_of(b.document()), {.block = 8, .type = graph::Type::float16});
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().what, HasSubstr("float16"));
}

}  // namespace
}  // namespace strata::compiler
