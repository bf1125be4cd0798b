// SPDX-License-Identifier: Apache-2.0
// Direct convolution against a float64 sum by definition: kernels, strides, dilation, tiny images, a linear layer after
// a flatten, what is fused, and taps that only meet padding.
#include "kit/direct.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "naive.hpp"

namespace kit::kernels {
namespace {

struct Case {
  int batch, in_channels, out_channels, height, width, kernel, stride, padding, dilation = 1;
};

Convolution convolution(const Case& c, Activation activation = {}) {
  const int reach = (c.kernel - 1) * c.dilation + 1;
  return {.batch = c.batch,
          .in_channels = c.in_channels,
          .out_channels = c.out_channels,
          .height = c.height,
          .width = c.width,
          .kernel_height = c.kernel,
          .kernel_width = c.kernel,
          .stride_height = c.stride,
          .stride_width = c.stride,
          .pad_top = c.padding,
          .pad_left = c.padding,
          .out_height = (c.height + 2 * c.padding - reach) / c.stride + 1,
          .out_width = (c.width + 2 * c.padding - reach) / c.stride + 1,
          .dilation_height = c.dilation,
          .dilation_width = c.dilation,
          .activation = activation};
}

void expect_equal(const Case& c, const Convolution& shape, const DirectPlan& plan, int threads, bool residual) {
  const test::NaiveConvolution naive{c.batch,  c.in_channels, c.out_channels, c.height,  c.width,
                                     c.kernel, c.stride,      c.padding,      c.dilation};
  const int places = shape.out_height * shape.out_width;
  const auto source = test::random_floats(std::size_t(c.batch) * c.in_channels * c.height * c.width, 1);
  const auto weights = test::random_floats(std::size_t(c.out_channels) * c.in_channels * c.kernel * c.kernel, 2);
  const auto bias = test::random_floats(c.out_channels, 3);
  const auto other = test::random_floats(std::size_t(c.batch) * c.out_channels * places, 4);
  auto expected = naive(source, weights, bias);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (residual) expected[i] += other[i];
    if (shape.activation.kind == Activation::Kind::relu) expected[i] = std::max(expected[i], 0.0);
  }
  const Direct direct(shape, plan, threads);
  std::vector<float> packed(direct.weight_floats());
  direct.pack(weights.data(), packed.data());
  const auto blocked = test::to_blocked(source, c.batch, c.in_channels, c.height * c.width);
  const auto shift = test::to_blocked(bias, 1, c.out_channels, 1);
  auto result = test::to_blocked(other, c.batch, c.out_channels, places);
  const auto sum = result;
  if (!residual) std::fill(result.begin(), result.end(), 777.0F);
  direct.run(blocked.data(), packed.data(), shift.data(), residual ? sum.data() : nullptr, result.data());
  const auto plain = test::from_blocked(result.data(), c.batch, c.out_channels, places);
  EXPECT_LT(test::relative_error(plain, expected), 16 / 16777216.0);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t channel = i / kBlock / places % blocks_of(c.out_channels) * kBlock + i % kBlock;
    if (channel >= std::size_t(c.out_channels)) {
      ASSERT_EQ(result[i], 0.0F) << "padded channel " << channel;
    }
  }
}

void expect_equal_for_all_plans(const Case& c, Activation activation = {}, bool residual = false) {
  for (const int threads : {1, 2, 3})
    for (const DirectPlan plan : {DirectPlan{1, 16}, DirectPlan{threads, 3}, DirectPlan{2, 1}}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(plan.channel_threads) + " for channels");
      expect_equal(c, convolution(c, activation), plan, threads, residual);
    }
}

TEST(KIT_TESTS_OF(Direct), equals_the_sum_by_definition_for_1x1) {
  expect_equal_for_all_plans({2, 32, 48, 7, 7, 1, 1, 0});
  expect_equal_for_all_plans({2, 32, 48, 7, 8, 1, 2, 0});
}

TEST(KIT_TESTS_OF(Direct), equals_the_sum_by_definition_for_3x3_with_stride_2) {
  expect_equal_for_all_plans({2, 16, 32, 9, 8, 3, 2, 1});
  expect_equal_for_all_plans({1, 16, 16, 14, 14, 3, 2, 1});
}

TEST(KIT_TESTS_OF(Direct), equals_the_sum_by_definition_for_larger_kernels_and_dilation) {
  expect_equal_for_all_plans({1, 16, 16, 11, 9, 5, 1, 2});
  expect_equal_for_all_plans({1, 3, 16, 15, 13, 7, 2, 3});
  expect_equal_for_all_plans({1, 16, 16, 9, 9, 3, 1, 2, 2});
}

TEST(KIT_TESTS_OF(Direct), pads_channels_that_are_no_multiple_of_a_block) {
  expect_equal_for_all_plans({2, 5, 19, 4, 5, 3, 1, 1});
}

TEST(KIT_TESTS_OF(Direct), drops_taps_that_only_meet_padding_together_with_their_weights) {
  const Case one{3, 16, 32, 1, 1, 3, 1, 1}, two{2, 16, 32, 2, 2, 3, 2, 1};
  expect_equal_for_all_plans(one);
  expect_equal_for_all_plans(two);
  EXPECT_EQ(Direct(convolution(one), {}, 1).weight_floats(), std::size_t(padded(16)) * padded(32));
  EXPECT_EQ(Direct(convolution(two), {}, 1).weight_floats(), std::size_t(4) * padded(16) * padded(32));
}

TEST(KIT_TESTS_OF(Direct), is_a_linear_layer_after_a_flatten_when_the_kernel_is_the_image) {
  expect_equal_for_all_plans({13, 16, 10, 4, 4, 4, 1, 0});
}

TEST(KIT_TESTS_OF(Direct), adds_a_residual_before_the_activation) {
  expect_equal_for_all_plans({2, 16, 24, 6, 7, 3, 1, 1}, {Activation::Kind::relu}, true);
  expect_equal_for_all_plans({1, 16, 40, 6, 7, 1, 1, 0}, {Activation::Kind::relu}, true);
}

TEST(KIT_TESTS_OF(Direct), has_a_plan_for_every_shape_that_gives_the_right_sum) {
  for (const Case& c :
       {Case{1, 64, 128, 1, 1, 1, 1, 0}, Case{9, 32, 16, 12, 12, 3, 1, 1}, Case{1, 16, 8, 3, 3, 3, 2, 1}})
    for (const int threads : {1, 2, 4})
      expect_equal(c, convolution(c), Direct::plan(convolution(c), threads), threads, false);
}

}  // namespace
}  // namespace kit::kernels
