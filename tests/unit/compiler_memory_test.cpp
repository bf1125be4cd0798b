// SPDX-License-Identifier: Apache-2.0
// The plan of the arena, and that verify() finds every way in which a program can be wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/compile.hpp"
#include "compiler/lifetimes.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/verify.hpp"
#include "compiler_graph.hpp"

namespace strata::compiler {
namespace {
using ::testing::HasSubstr;

// conv + relu, conv + sum over the first's result, conv: blocked, one of them in place.
Program small() {
  GraphBuilder b;
  const int x = b.act(b.conv(b.input("x", {1, 3, 4, 4}), 8));
  b.output("out", b.mean(b.conv(b.add(b.conv(b.act(x), 8), x), 8)));
  const auto program = compile(*graph_of(b.document()), {.block = 8});
  EXPECT_TRUE(program) << program.error().what;
  return *program;
}

std::string breach(const std::function<void(Program&)>& damage) {
  auto program = small();
  damage(program);
  const auto right = verify(program);
  return right ? "" : right.error().what;
}

TEST(CompilerMemory, a_right_program_is_accepted) {
  EXPECT_EQ(breach([](Program&) {}), "");
}

TEST(CompilerMemory, a_value_read_before_it_is_written_is_found) {
  EXPECT_THAT(breach([](Program& p) { std::swap(p.steps[0], p.steps[1]); }), HasSubstr("not written yet"));
  EXPECT_THAT(breach([](Program& p) { p.steps.erase(p.steps.begin()); }), HasSubstr("not written yet"));
}

TEST(CompilerMemory, storages_that_overlap_while_both_live_are_found) {
  const auto message = breach([](Program& p) {
    for (auto& place : p.places) place.offset = place.offset < 0 ? -1 : 0;
  });
  EXPECT_THAT(message, HasSubstr("live at the same time and overlap"));
}

TEST(CompilerMemory, offsets_outside_or_not_aligned_are_found) {
  const auto moved = [](std::int64_t by) {
    return breach([&](Program& p) {
      for (auto& place : p.places) place.offset += place.offset < 0 ? 0 : by;
    });
  };
  EXPECT_THAT(moved(1 << 20), HasSubstr("at offset"));
  EXPECT_THAT(moved(4), HasSubstr("at offset"));
}

TEST(CompilerMemory, a_result_written_over_an_operand_that_is_still_read_is_found) {
  // the first convolution's result shares its storage with that of the second activation: the sum reads it later
  const auto message = breach([](Program& p) {
    const int first = p.steps[0].node.outputs[0], second = p.steps[1].node.outputs[0];
    const int own = p.place(second).storage;
    for (auto& place : p.places)
      if (place.storage == own) place.storage = p.place(first).storage;
  });
  EXPECT_THAT(message, HasSubstr("written over"));
}

TEST(CompilerMemory, a_convolution_in_place_of_its_own_input_is_found) {
  const auto message = breach([](Program& p) {
    const auto& last = p.steps[3];
    ASSERT_EQ(last.node.operation(), "conv2d");
    p.place(last.node.outputs[0]).storage = p.place(last.node.tensor("input")).storage;
  });
  EXPECT_THAT(message, HasSubstr("which it still reads"));
}

TEST(CompilerMemory, wrong_sizes_layouts_and_memories_are_found) {
  EXPECT_THAT(breach([](Program& p) { p.place(p.steps[0].node.outputs[0]).bytes -= 4; }), HasSubstr("is said to have"));
  EXPECT_THAT(breach([](Program& p) {
                auto& place = p.place(p.graph.outputs[0].value);
                place.in = Place::In::arena;
              }),
              HasSubstr("not plain in the caller's memory"));
  EXPECT_THAT(breach([](Program& p) { p.place(p.graph.inputs[0].value).layout = Layout::channels_last; }),
              HasSubstr("given and not plain"));
  EXPECT_THAT(breach([](Program& p) { p.steps[0].view = true; }), HasSubstr("is a view with a storage of its own"));
  EXPECT_THAT(breach([](Program& p) { p.steps[1].when = When::load; }), HasSubstr("comes after one of the run"));
}

TEST(CompilerMemory, the_plan_of_a_chain_holds_the_two_largest_neighbours) {
  GraphBuilder b;
  int x = b.input("x", {1, 1, 8, 8});
  for (const int channels : {2, 8, 4, 6, 1}) x = b.conv(x, channels);
  b.output("out", x);
  const auto program = compile(*graph_of(b.document()), {8, "remove_dead"});
  ASSERT_TRUE(program);
  EXPECT_EQ(program->arena_bytes, (8 + 4) * 256);
  EXPECT_EQ(program->least_arena_bytes, program->arena_bytes);
}

TEST(CompilerMemory, random_networks_are_planned_close_to_the_lower_bound) {
  double worst = 1, sum = 0;
  int count = 0;
  for (unsigned seed = 0; seed < random_networks(300); ++seed) {
    const auto program = compile(*graph_of(RandomGraph(seed).make()), {.block = 8});
    ASSERT_TRUE(program) << program.error().what;
    EXPECT_GE(program->arena_bytes, program->least_arena_bytes);
    if (program->least_arena_bytes == 0) continue;
    const double ratio = static_cast<double>(program->arena_bytes) / static_cast<double>(program->least_arena_bytes);
    worst = std::max(worst, ratio);
    sum += ratio;
    ++count;
  }
  EXPECT_LT(worst, 1.5);
  EXPECT_LT(sum / count, 1.02);
}

TEST(CompilerMemory, more_bytes_than_64_bits_can_count_are_an_error) {
  GraphBuilder b;
  int x = b.input("x", {1 << 20, 1 << 20, 1 << 10, 1 << 10});
  for (int i = 0; i < 3; ++i) x = b.act(x, "sigmoid");
  b.output("out", b.average(x));
  const auto program = compile(*graph::parse(b.document().dump(), "it"), {.stop_after = "lower"});
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().what, HasSubstr("more bytes than 64 bits can count"));
}

}  // namespace
}  // namespace strata::compiler
