// SPDX-License-Identifier: Apache-2.0
// The choice of layouts: few bytes are reordered, and never more than if only layers had layouts of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/compile.hpp"
#include "compiler/layouts.hpp"
#include "compiler_graph.hpp"

namespace strata::compiler {
namespace {
using ::testing::ElementsAre;

Program laid_out(const json& document, std::int64_t block = 8, Target target = Target::cpu) {
  const auto graph = graph_of(document);
  EXPECT_TRUE(graph) << graph.error().what;
  const auto program = compile(*graph, {block, "propagate_layouts", {}, target});
  EXPECT_TRUE(program) << program.error().what;
  return *program;
}

// Operation and layout of each step's first result.
std::vector<std::string> layouts(const Program& program) {
  std::vector<std::string> all;
  for (const auto& step : program.steps)
    if (step.when == When::run)
      all.push_back(step.node.operation() + (step.view ? ":view " : " ") +
                    std::string(name_of(program.place(step.node.outputs.front()).layout)));
  return all;
}

TEST(CompilerLayouts, a_convolutional_network_stays_in_blocks_from_the_first_layer_to_the_flattening) {
  GraphBuilder b;
  const int x = b.pool(b.act(b.conv(b.input("x", {1, 3, 8, 8}), 8, 3)), true);
  const int y = b.act(b.add(b.conv(x, 8, 3, 1, 8), x));
  b.output("out", b.linear(b.flatten(b.average(b.conv(y, 16))), 5));
  EXPECT_THAT(
      layouts(laid_out(b.document())),
      ElementsAre("conv2d blocked", "max_pool2d blocked", "conv2d blocked", "conv2d blocked",
                  "adaptive_avg_pool2d blocked", "strata.reorder:view plain", "flatten:view plain", "linear plain"));
}

TEST(CompilerLayouts, on_a_gpu_a_convolutional_network_lies_channels_last_and_nothing_lies_in_blocks) {
  GraphBuilder b;
  const int x = b.pool(b.act(b.conv(b.input("x", {1, 3, 8, 8}), 12, 3)), true);
  const int y = b.act(b.add(b.conv(x, 12, 3, 1, 4), x));
  b.output("out", b.linear(b.flatten(b.average(b.conv(y, 16))), 5));
  EXPECT_THAT(layouts(laid_out(b.document(), 8, Target::cuda)),
              ElementsAre("strata.reorder channels_last", "conv2d channels_last", "max_pool2d channels_last",
                          "conv2d channels_last", "conv2d channels_last", "adaptive_avg_pool2d channels_last",
                          "strata.reorder:view plain", "flatten:view plain", "linear plain"));
}

TEST(CompilerLayouts, channels_that_fill_no_block_are_reordered_where_fewest_bytes_are) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 3, 8, 8}), 12, 3);
  b.output("out", b.linear(b.flatten(b.average(x)), 5));
  const auto program = laid_out(b.document());
  EXPECT_THAT(layouts(program), ElementsAre("conv2d blocked", "adaptive_avg_pool2d blocked", "strata.reorder plain",
                                            "flatten:view plain", "linear plain"));
  EXPECT_EQ(reorder_bytes(program), (16 + 12) * 4);
}

TEST(CompilerLayouts, parts_are_joined_in_blocks_only_if_all_are_whole) {
  for (const int channels : {16, 12}) {
    GraphBuilder b;
    const int x = b.conv(b.input("x", {1, 3, 4, 4}), 16);
    b.output("out", b.average(b.conv(b.cat({x, b.conv(x, channels)}), 16)));
    int reorders = 0;
    for (const auto& one : layouts(laid_out(b.document()))) reorders += one.starts_with("strata.reorder ");
    EXPECT_EQ(reorders, channels == 16 ? 0 : 3);
  }
}

TEST(CompilerLayouts, two_readers_of_one_layout_share_a_reorder) {
  GraphBuilder b;
  const int x = b.input("x", {1, 16, 4, 4});
  b.output("out", b.mean(b.cat({b.conv(x, 8), b.conv(x, 8)})));
  const auto program = laid_out(b.document());
  EXPECT_EQ(std::count_if(program.steps.begin(), program.steps.end(),
                          [](const Step& s) { return s.node.operation() == "strata.reorder"; }),
            1);
}

TEST(CompilerLayouts, groups_that_straddle_blocks_lie_channels_last_and_a_permutation_of_them_is_free) {
  GraphBuilder b;
  const int x = b.conv(b.input("x", {1, 8, 4, 4}), 8, 3, 1, 2);
  b.output("out", b.linear(b.permute(x, {0, 2, 3, 1}), 5));
  EXPECT_THAT(layouts(laid_out(b.document())), ElementsAre("strata.reorder channels_last", "conv2d channels_last",
                                                           "permute:view plain", "linear plain"));
}

// Bytes moved for nothing but another order.
std::int64_t moved_bytes(const Program& program) {
  std::int64_t total = reorder_bytes(program);
  for (const auto& step : program.steps)
    if (step.node.operation() == "permute" && !step.view) total += 2 * program.value(step.node.outputs.front()).bytes();
  return total;
}

// The same if every layer has its layout and everything else is plain.
std::int64_t naive_bytes(const graph::Graph& graph, std::int64_t block) {
  const auto program = compile(graph, {block, "remove_dead"});
  std::int64_t total = moved_bytes(*program);
  std::map<int, Layout> layout;
  for (const auto& step : program->steps)
    if (step.node.operation() == "conv2d")
      layout[step.node.outputs.front()] = layout_options(*program, step).front().out;
  std::set<std::pair<int, Layout>> reorders;
  const auto move = [&](int value, Layout to) {
    const auto& one = program->value(value);
    const auto from = layout.contains(value) ? layout[value] : Layout::plain;
    if (program->place(value).in != Place::In::weights && has_layouts(one) && !same_bytes(one, from, to, block) &&
        reorders.insert({value, to}).second)
      total += *bytes_in(one, from, block) + *bytes_in(one, to, block);
  };
  for (const auto& step : program->steps) {
    const auto option = layout_options(*program, step).front();
    const bool layer = step.node.operation() == "conv2d";
    for (const auto& argument : step.node.args)
      for (const int value : argument.values) move(value, layer ? option.in : Layout::plain);
    for (const auto& post : step.posts)
      if (post.value >= 0) move(post.value, layer ? option.out : Layout::plain);
  }
  for (const auto& one : program->graph.outputs) move(one.value, Layout::plain);
  return total;
}

TEST(CompilerLayouts, never_more_bytes_are_moved_than_if_only_layers_had_layouts) {
  std::int64_t chosen = 0, naive = 0;
  for (unsigned seed = 0; seed < random_networks(300); ++seed) {
    const auto document = RandomGraph(seed).make();
    const auto bytes = moved_bytes(laid_out(document)), most = naive_bytes(*graph_of(document), 8);
    ASSERT_LE(bytes, most) << "seed " << seed;
    chosen += bytes;
    naive += most;
  }
  EXPECT_LT(chosen, 0.8 * static_cast<double>(naive));
}

}  // namespace
}  // namespace strata::compiler
