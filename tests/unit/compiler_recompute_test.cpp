// SPDX-License-Identifier: Apache-2.0
// Training steps under a memory budget: they fit, and compute what those do that keep everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compile.hpp"
#include "compiler_fingerprints.hpp"
#include "compiler_graph.hpp"
#include "report/program.hpp"

namespace strata::compiler {
namespace {
using ::testing::HasSubstr;

Result<Program> fitted(const json& document, std::optional<MemoryBudget> budget, const std::string& stop_after = "") {
  const auto network = graph_of(document);
  if (!network) return tl::unexpected(network.error());
  auto step = graph::differentiate(*network, graph::Loss::cross_entropy);
  if (!step) return tl::unexpected(step.error());
  return compile(*std::move(step), {.block = 8, .stop_after = stop_after, .budget = budget});
}
Program whole(const json& document) {
  const auto program = fitted(document, {});
  if (!program) throw std::runtime_error(program.error().what);
  return *program;
}
Result<Program> share(const json& document, double part) {
  return fitted(document, MemoryBudget{0, part});
}

// Blocks of two layers with batch norms and a shortcut, a pooling, a dropout; then scores.
json blocks(int count) {
  GraphBuilder b(true);
  int x = b.act(b.norm(b.conv(b.input("x", {2, 3, 8, 8}), 8, 3)));
  for (int i = 0; i < count; ++i) {
    const int y = b.norm(b.conv(b.act(b.norm(b.conv(x, 8, 3))), 8, 3));
    x = b.act(b.add(y, x));
  }
  x = b.act(b.pool(x, true), "dropout");
  b.output("scores", b.linear(b.mean(b.act(b.conv(x, 16, 3))), 4));
  return b.document();
}

std::vector<const Step*> repeated(const Program& program) {
  std::vector<const Step*> found;
  for (const auto& step : program.steps)
    if (step.again) found.push_back(&step);
  return found;
}

TEST(CompilerRecompute, a_budget_is_held_and_loss_gradients_and_statistics_are_the_same_bits) {
  const auto document = blocks(4);
  const auto all = whole(document);
  const auto expected = fingerprints_of(all);
  std::size_t before = 0;
  for (const double part : {0.9, 0.75, 0.6, 0.5}) {
    const auto program = share(document, part);
    ASSERT_TRUE(program) << program.error().what;
    EXPECT_LE(program->arena_bytes, static_cast<std::int64_t>(part * static_cast<double>(all.arena_bytes)));
    EXPECT_EQ(fingerprints_of(*program), expected) << part;
    EXPECT_GT(repeated(*program).size(), before);
    before = repeated(*program).size();
  }
}

TEST(CompilerRecompute, fingerprints_notice_a_byte_written_over_an_effect_too_many_and_a_late_repetition) {
  const auto document = blocks(3);
  const auto good = share(document, 0.6);
  ASSERT_TRUE(good) << good.error().what;
  const auto expected = fingerprints_of(*good);
  auto overlapping = *good;
  for (auto& place : overlapping.places)
    if (place.offset > 0) place.offset -= alignof(std::max_align_t);
  EXPECT_NE(fingerprints_of(overlapping), expected);
  auto twice = *good;
  const auto norm = std::ranges::find_if(
      twice.steps, [](const Step& step) { return step.node.operation() == "strata.batch_norm_train"; });
  twice.steps.insert(norm, *norm);
  EXPECT_NE(fingerprints_of(twice), expected);
  auto late = *good;
  const auto layer = std::ranges::find_if(
      late.steps, [](const Step& step) { return step.again && step.node.operation() == "conv2d"; });
  ASSERT_NE(layer, late.steps.end());
  std::rotate(layer, layer + 1, late.steps.end());
  EXPECT_NE(fingerprints_of(late), expected);
}

TEST(CompilerRecompute, without_a_budget_and_with_one_that_is_kept_anyway_nothing_is_repeated) {
  const auto document = blocks(2);
  const auto all = whole(document);
  for (const auto& budget : {MemoryBudget{0, 1}, MemoryBudget{all.arena_bytes, 0}}) {
    const auto program = fitted(document, budget);
    ASSERT_TRUE(program) << program.error().what;
    EXPECT_TRUE(repeated(*program).empty());
    EXPECT_EQ(program->arena_bytes, all.arena_bytes);
    EXPECT_EQ(program->steps.size(), all.steps.size());
  }
}

TEST(CompilerRecompute, a_repeated_batch_norm_leaves_its_running_statistics_alone) {
  const auto program = share(blocks(3), 0.55);
  ASSERT_TRUE(program) << program.error().what;
  bool norm = false;
  for (const auto* step : repeated(*program)) {
    EXPECT_EQ(step->phase, Phase::backward);
    if (step->node.operation() != "strata.batch_norm_train") continue;
    norm = true;
    EXPECT_TRUE(step->node.is_null("running_mean") && step->node.is_null("running_var"));
    EXPECT_EQ(step->node.outputs.size(), 3U);
  }
  EXPECT_TRUE(norm);
}

TEST(CompilerRecompute, a_repeated_dropout_reads_its_mask_and_draws_none) {
  GraphBuilder b(true);
  int x = b.input("x", {2, 8, 8, 8});
  for (int i = 0; i < 4; ++i) x = b.act(b.act(b.conv(x, 8, 3)), "dropout");
  b.output("scores", b.mean(b.conv(x, 8, 3)));
  const auto program = share(b.document(), 0.8);
  ASSERT_TRUE(program) << program.error().what;
  EXPECT_EQ(fingerprints_of(*program), fingerprints_of(whole(b.document())));
  bool dropout = false;
  for (const auto* step : repeated(*program)) {
    EXPECT_NE(step->node.operation(), "strata.dropout_train");
    dropout = dropout || step->node.operation() == "strata.dropout_again";
  }
  EXPECT_TRUE(dropout);
}

// Whether its sum is taken in place depends on who else reads the summand, and with that how it rounds.
TEST(CompilerRecompute, a_layer_that_takes_a_sum_is_not_repeated) {
  GraphBuilder b(true);
  int x = b.conv(b.input("x", {2, 8, 8, 8}), 8);
  for (int i = 0; i < 4; ++i) x = b.add(b.conv(b.act(x, "sigmoid"), 8, 3), x);
  b.output("scores", b.mean(b.act(x)));
  const auto program = share(b.document(), 0.9);
  ASSERT_TRUE(program) << program.error().what;
  bool sums = false;
  for (const auto& step : program->steps)
    if (step.node.operation() == "conv2d" && !step.posts.empty()) {
      sums = true;
      EXPECT_FALSE(step.again);
    }
  EXPECT_TRUE(sums);
}

// No single one gains anything: its parts would be kept in its place.
TEST(CompilerRecompute, concatenations_of_the_same_parts_are_made_again_together) {
  GraphBuilder b(true);
  std::vector<int> parts{b.conv(b.input("x", {2, 3, 8, 8}), 8, 3)};
  for (int i = 0; i < 20; ++i) parts.push_back(b.conv(b.act(b.norm(b.cat(parts))), 8, 3));
  b.output("scores", b.linear(b.mean(b.cat(parts)), 4));
  const auto program = share(b.document(), 0.4);
  ASSERT_TRUE(program) << program.error().what;
  EXPECT_EQ(fingerprints_of(*program), fingerprints_of(whole(b.document())));
  const auto again = repeated(*program);
  EXPECT_GT(std::ranges::count_if(again, [](const Step* step) { return step->node.operation() == "cat"; }), 4);
}

TEST(CompilerRecompute, a_budget_that_cannot_be_met_is_refused_with_the_least_and_with_what_lies_at_the_peak) {
  const auto document = blocks(3);
  const auto refused = fitted(document, MemoryBudget{1000, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().exit, Exit::failed);
  EXPECT_THAT(refused.error().what, HasSubstr("a memory budget of 1000 bytes cannot be met"));
  EXPECT_THAT(refused.error().what, HasSubstr("' of layer"));
  const auto least = std::stoll(refused.error().what.substr(refused.error().what.find("the least found is ") + 19));
  EXPECT_GT(least, 1000);
  // what it says can be done, can be done
  const auto program = fitted(document, MemoryBudget{least, 0});
  ASSERT_TRUE(program) << program.error().what;
  EXPECT_EQ(fingerprints_of(*program), fingerprints_of(whole(document)));
}

TEST(CompilerRecompute, the_report_says_what_is_repeated_and_what_it_takes) {
  const auto program = share(blocks(3), 0.6);
  ASSERT_TRUE(program);
  const auto text = report::repeated_text(*program);
  EXPECT_THAT(text, HasSubstr(fmt::format("{} of ", repeated(*program).size())));
  EXPECT_THAT(text, HasSubstr("% of the forward phase's"));
  EXPECT_GT(report::program_json(*program, "net", "plan_memory")["repeated_flops"], 0);
}

TEST(CompilerRecompute, random_networks_fit_their_budgets_with_the_same_results) {
  unsigned fits = 0, tried = 0;
  for (unsigned seed = 0; seed < random_networks(300); ++seed) {
    const auto document = RandomGraph(seed, true).make_scores();
    const auto all = fitted(document, {});
    if (!all) continue;  // an operation without a backward rule
    const auto expected = fingerprints_of(*all);
    for (const double part : {0.85, 0.6}) {
      ++tried;
      const auto program = share(document, part);
      if (!program) {
        EXPECT_THAT(program.error().what, HasSubstr("a memory budget of")) << "seed " << seed;
        continue;
      }
      ++fits;
      EXPECT_LE(program->arena_bytes, static_cast<std::int64_t>(part * static_cast<double>(all->arena_bytes)));
      EXPECT_EQ(fingerprints_of(*program), expected) << "seed " << seed << ", " << part;
    }
  }
  EXPECT_GT(fits, tried / 4);
}

}  // namespace
}  // namespace strata::compiler
