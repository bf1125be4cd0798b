// SPDX-License-Identifier: Apache-2.0
// Winograd convolution against a float64 sum by definition: every plan, odd sizes, what is fused, padded channels.
#include "kit/winograd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "naive.hpp"

namespace kit::kernels {
namespace {

struct Outcome {
  std::vector<float> result;  // N C H W
  std::vector<double> expected;
  std::vector<float> blocked;
  bool scratch_kept;  // nothing was written behind the scratch
};

struct Options {
  bool bias = true, residual = false, in_place = false;
};

Outcome run(const Convolution3x3& shape, const WinogradPlan& plan, int threads, const Options& options = {}) {
  const test::NaiveConvolution naive{shape.batch, shape.in_channels, shape.out_channels, shape.height, shape.width, 3,
                                     1,           shape.padding};
  const int places = shape.out_height() * shape.out_width();
  const auto source = test::random_floats(std::size_t(shape.batch) * shape.in_channels * shape.height * shape.width, 1);
  const auto weights = test::random_floats(std::size_t(shape.out_channels) * shape.in_channels * 9, 2);
  auto bias = test::random_floats(shape.out_channels, 3);
  if (!options.bias) std::fill(bias.begin(), bias.end(), 0.0F);
  const auto residual = test::random_floats(std::size_t(shape.batch) * shape.out_channels * places, 4);

  Outcome out;
  out.expected = naive(source, weights, bias);
  const Winograd winograd(shape, plan, threads);
  std::vector<float> packed(winograd.weight_floats()), scratch(winograd.scratch_floats() + 64, 12345.0F);
  winograd.pack(weights.data(), packed.data());
  const auto blocked = test::to_blocked(source, shape.batch, shape.in_channels, shape.height * shape.width);
  const auto blocked_bias = test::to_blocked(bias, 1, shape.out_channels, 1);
  auto sum = test::to_blocked(residual, shape.batch, shape.out_channels, places);
  out.blocked.assign(sum.size(), 777.0F);
  if (options.in_place) out.blocked = sum;
  const float* other = options.in_place ? out.blocked.data() : options.residual ? sum.data() : nullptr;
  winograd.run(blocked.data(), packed.data(), options.bias ? blocked_bias.data() : nullptr, other, out.blocked.data(),
               scratch.data());
  out.scratch_kept = std::all_of(scratch.end() - 64, scratch.end(), [](float v) { return v == 12345.0F; });
  out.result = test::from_blocked(out.blocked.data(), shape.batch, shape.out_channels, places);
  for (std::size_t i = 0; i < out.expected.size(); ++i) {
    double& v = out.expected[i];
    if (other) v += residual[i];
    if (shape.activation.kind == Activation::Kind::relu) v = std::max(v, 0.0);
    if (shape.activation.kind == Activation::Kind::clamp)
      v = std::clamp(v, double(shape.activation.low), double(shape.activation.high));
  }
  return out;
}

// In units of 2^-24: a direct sum over 256 channels has about 5, F(2x2) 8, F(4x4) 20; a wrong tap has millions.
double allowed(int tile) {
  return (tile == 2 ? 16 : 40) / 16777216.0;
}

std::vector<WinogradPlan> plans() {
  return {{2, false, 24}, {2, true, 24}, {4, false, 24}, {4, true, 24}, {4, false, 5}, {4, true, 7}, {2, true, 1}};
}

void expect_equal_for_all_plans(const Convolution3x3& shape, const Options& options = {}) {
  for (const auto& plan : plans())
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE("tile " + std::to_string(plan.tile) + (plan.shared ? " shared" : "") + ", " +
                   std::to_string(plan.tiles_at_once) + " at once, " + std::to_string(threads) + " threads");
      const Outcome done = run(shape, plan, threads, options);
      EXPECT_LT(test::relative_error(done.result, done.expected), allowed(plan.tile));
      EXPECT_TRUE(done.scratch_kept);
    }
}

TEST(KIT_TESTS_OF(Winograd), equals_the_sum_by_definition_on_an_image_of_whole_tiles) {
  expect_equal_for_all_plans({1, 16, 32, 8, 8, 1, {}});
}

TEST(KIT_TESTS_OF(Winograd), equals_the_sum_by_definition_where_tiles_stand_out_on_both_sides) {
  expect_equal_for_all_plans({2, 32, 16, 7, 9, 1, {}});
  expect_equal_for_all_plans({1, 16, 48, 13, 5, 1, {}});
}

TEST(KIT_TESTS_OF(Winograd), equals_the_sum_by_definition_on_the_smallest_images) {
  expect_equal_for_all_plans({3, 16, 16, 1, 1, 1, {}});
  expect_equal_for_all_plans({1, 16, 16, 2, 1, 1, {}});
  expect_equal_for_all_plans({1, 16, 16, 3, 3, 0, {}});
}

TEST(KIT_TESTS_OF(Winograd), equals_the_sum_by_definition_without_padding) {
  expect_equal_for_all_plans({2, 16, 16, 10, 7, 0, {}});
}

TEST(KIT_TESTS_OF(Winograd), equals_the_sum_by_definition_with_a_padding_of_2) {
  expect_equal_for_all_plans({2, 16, 32, 6, 5, 2, {}});
  expect_equal_for_all_plans({1, 16, 16, 1, 2, 2, {}});
}

TEST(KIT_TESTS_OF(Winograd), pads_channels_that_are_no_multiple_of_a_block_and_leaves_zeros_there) {
  const Convolution3x3 shape{2, 5, 19, 6, 6, 1, {Activation::Kind::relu}};
  expect_equal_for_all_plans(shape);
  const Outcome done = run(shape, {}, 2);
  const int places = shape.out_height() * shape.out_width();
  for (int n = 0; n < shape.batch; ++n)
    for (int c = shape.out_channels; c < padded(shape.out_channels); ++c)
      for (int i = 0; i < places; ++i)
        ASSERT_EQ(done.blocked[((std::size_t(n) * blocks_of(shape.out_channels) + c / kBlock) * places + i) * kBlock +
                               c % kBlock],
                  0.0F);
}

TEST(KIT_TESTS_OF(Winograd), adds_a_residual_before_the_activation) {
  expect_equal_for_all_plans({2, 16, 32, 6, 7, 1, {Activation::Kind::relu}}, {.residual = true});
}

TEST(KIT_TESTS_OF(Winograd), adds_a_residual_that_it_writes_over) {
  expect_equal_for_all_plans({2, 16, 32, 6, 7, 1, {Activation::Kind::relu}}, {.in_place = true});
}

TEST(KIT_TESTS_OF(Winograd), clamps_to_both_bounds) {
  expect_equal_for_all_plans({1, 16, 16, 6, 6, 1, {Activation::Kind::clamp, 0.0F, 6.0F}});
  expect_equal_for_all_plans({1, 16, 16, 6, 6, 1, {Activation::Kind::clamp, -1.0F, 1.0F}});
}

TEST(KIT_TESTS_OF(Winograd), takes_no_bias) {
  expect_equal_for_all_plans({1, 16, 16, 6, 6, 1, {}}, {.bias = false});
}

TEST(KIT_TESTS_OF(Winograd), hands_nan_on_through_the_activation) {
  const Convolution3x3 shape{1, kBlock, kBlock, 6, 6, 1, {Activation::Kind::relu}};
  const Winograd winograd(shape, {}, 1);
  std::vector<float> source(kBlock * 36, 1.0F), weights(kBlock * kBlock * 9, 1.0F), packed(winograd.weight_floats()),
      scratch(winograd.scratch_floats()), destination(kBlock * 36);
  source[0] = std::nanf("");
  winograd.pack(weights.data(), packed.data());
  winograd.run(source.data(), packed.data(), nullptr, nullptr, destination.data(), scratch.data());
  EXPECT_TRUE(std::isnan(destination[0]));
}

// O I 3 3 to O/b I/b 3 3 b(I) b(O).
std::vector<float> in_blocks(const std::vector<float>& weights, int out_channels, int in_channels) {
  std::vector<float> out(std::size_t(padded(out_channels)) * padded(in_channels) * 9);
  for (int o = 0; o < out_channels; ++o)
    for (int i = 0; i < in_channels; ++i)
      for (int tap = 0; tap < 9; ++tap)
        out[((std::size_t(o / kBlock) * blocks_of(in_channels) + i / kBlock) * 9 + tap) * kBlock * kBlock +
            i % kBlock * kBlock + o % kBlock] = weights[(std::size_t(o) * in_channels + i) * 9 + tap];
  return out;
}

TEST(KIT_TESTS_OF(Winograd), packs_weights_in_blocks_to_the_same_bits) {
  constexpr int kIn = 21, kOut = 35;
  const auto weights = test::random_floats(std::size_t(kOut) * kIn * 9, 2);
  for (const int tile : {2, 4}) {
    const Winograd winograd({1, kIn, kOut, 8, 8, 1, {}}, {tile, false, 24}, 2);
    std::vector<float> packed(winograd.weight_floats(), 1.0F), other(winograd.weight_floats(), 2.0F);
    winograd.pack(weights.data(), packed.data());
    winograd.pack_blocks(in_blocks(weights, kOut, kIn).data(), other.data());
    EXPECT_EQ(packed, other);
  }
}

// The gradient of the input by its definition: sum over o, ky, kx of gradient[y + padding - ky] weight[o][i][ky][kx].
std::vector<double> naive_gradient(const test::NaiveConvolution& forward, const std::vector<float>& gradient,
                                   const std::vector<float>& weights) {
  const int high = forward.out_height(), wide = forward.out_width();
  std::vector<double> out(std::size_t(forward.batch) * forward.in_channels * forward.height * forward.width);
  for (int n = 0; n < forward.batch; ++n)
    for (int o = 0; o < forward.out_channels; ++o)
      for (int i = 0; i < forward.in_channels; ++i)
        for (int y = 0; y < high; ++y)
          for (int x = 0; x < wide; ++x)
            for (int tap = 0; tap < 9; ++tap) {
              const int at_y = y + tap / 3 - forward.padding, at_x = x + tap % 3 - forward.padding;
              if (at_y < 0 || at_x < 0 || at_y >= forward.height || at_x >= forward.width) continue;
              out[((std::size_t(n) * forward.in_channels + i) * forward.height + at_y) * forward.width + at_x] +=
                  double(gradient[((std::size_t(n) * forward.out_channels + o) * high + y) * wide + x]) *
                  weights[(std::size_t(o) * forward.in_channels + i) * 9 + tap];
            }
  return out;
}

TEST(KIT_TESTS_OF(Winograd), is_the_gradient_of_a_convolutions_input_with_its_weights_reversed) {
  for (const int padding : {0, 1})
    for (const int tile : {2, 4}) {
      const test::NaiveConvolution forward{2, 37, 21, 11, 9, 3, 1, padding};
      const int high = forward.out_height(), wide = forward.out_width();
      const auto weights = test::random_floats(std::size_t(21) * 37 * 9, 2);
      const auto gradient = test::random_floats(std::size_t(2) * 21 * high * wide, 3);
      const Winograd winograd({2, 21, 37, high, wide, 2 - padding, {}}, {tile, false, 24}, 2);
      std::vector<float> packed(winograd.weight_floats()), scratch(winograd.scratch_floats()),
          result(std::size_t(2) * padded(37) * 11 * 9);
      winograd.pack_gradient(in_blocks(weights, 21, 37).data(), packed.data());
      winograd.run(test::to_blocked(gradient, 2, 21, high * wide).data(), packed.data(), nullptr, nullptr,
                   result.data(), scratch.data());
      EXPECT_LT(test::relative_error(test::from_blocked(result.data(), 2, 37, 11 * 9),
                                     naive_gradient(forward, gradient, weights)),
                allowed(tile));
    }
}

TEST(KIT_TESTS_OF(Winograd), gives_the_same_bits_with_any_number_of_threads) {
  const Convolution3x3 shape{2, 32, 48, 14, 14, 1, {}};
  const auto alone = run(shape, {4, false, 24}, 1).blocked;
  EXPECT_EQ(alone, run(shape, {4, false, 24}, 3).blocked);
  EXPECT_EQ(alone, run(shape, {4, true, 24}, 2).blocked);
}

TEST(KIT_TESTS_OF(Winograd), has_a_plan_that_gives_the_right_sum_or_leaves_the_shape_to_the_direct_sum) {
  EXPECT_FALSE(winograd_pays(work_of({1, 512, 512, 1, 1, 1, {}}), 2));
  EXPECT_NE(Winograd::plan({1, 512, 512, 7, 7, 1, {}}, 2).tile, 4) << "its weights are four times as many";
  EXPECT_EQ(Winograd::plan({1, 64, 64, 56, 56, 1, {}}, 2).tile, 4);
  for (const Convolution3x3& shape : {Convolution3x3{1, 64, 64, 28, 28, 1, {}}, {4, 64, 64, 7, 7, 1, {}}}) {
    ASSERT_TRUE(winograd_pays(work_of(shape), 2));
    const auto plan = Winograd::plan(shape, 2);
    const Outcome done = run(shape, plan, 2);
    EXPECT_LT(test::relative_error(done.result, done.expected), allowed(plan.tile));
  }
}

TEST(KIT_TESTS_OF(Winograd), has_a_small_error_in_the_sizes_of_real_networks) {
  for (const int tile : {2, 4}) {
    const Outcome done = run({1, 256, 64, 14, 14, 1, {}}, {tile, true, 24}, 2);
    EXPECT_LT(test::relative_error(done.result, done.expected), allowed(tile));
  }
}

}  // namespace
}  // namespace kit::kernels
