// SPDX-License-Identifier: Apache-2.0
// Batch norm and layer norm of the kernels for CUDA, in host memory and on a device (kernels_test.cpp).
#include "kit_cuda/kernels/normalisation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "floats.hpp"

namespace kit_cuda {
namespace {

struct Statistics {
  Floats mean = Floats(3), deviation = Floats(3);
};

Floats normalised(const Floats& x, const View& view, const Floats& scale, const Floats& shift, Statistics& statistics) {
  BatchNorm how{.x = {x.data(), view}, .scale = scale.data(), .shift = shift.data(), .epsilon = 1e-3};
  Floats y(x.size());
  how.mean = statistics.mean.data();
  how.deviation = statistics.deviation.data();
  how.y = {y.data(), view};
  batch_norm(nullptr, how);
  return y;
}

TEST(KernelsForCuda, batch_norm_has_the_gradients_of_differences_in_both_layouts) {
  const Extents dims{2, 3, 2, 2};
  const Floats x = random_floats(24, 4), g = random_floats(24, 5), scale{0.5F, 2, -1}, shift{1, 0, 3};
  for (const View& view : {plain(dims), last(dims)}) {
    Statistics statistics;
    normalised(x, view, scale, shift, statistics);
    Floats of_x(24), of_scale(3), of_shift(3), masked(24);
    BatchNormBackward how{.gradient = {g.data(), view}, .x = {x.data(), view}};
    how.mean = statistics.mean.data();
    how.deviation = statistics.deviation.data();
    how.scale = scale.data();
    how.of_x = {of_x.data(), view};
    how.masked = {masked.data(), view};
    how.of_scale = of_scale.data();
    how.of_shift = of_shift.data();
    batch_norm_backward(nullptr, how);
    Statistics other;
    expect_near(of_x, by_differences([&](const Floats& at) { return normalised(at, view, scale, shift, other); }, x, g),
                5e-3F);
    expect_near(of_scale,
                by_differences([&](const Floats& at) { return normalised(x, view, at, shift, other); }, scale, g),
                1e-3F);
    expect_near(of_shift,
                by_differences([&](const Floats& at) { return normalised(x, view, scale, at, other); }, shift, g),
                1e-3F);
    EXPECT_EQ(masked, g);
  }
}

TEST(KernelsForCuda, running_statistics_take_the_unbiased_variance_whoever_computed_the_batch_norm) {
  const Floats x{1, 3, 5, 7}, old_mean{10}, old_variance{2};
  const View view = plain({4, 1});
  Floats mean(1), deviation(1), y(4), new_mean(1), new_variance(1);
  BatchNorm how{.x = {x.data(), view}, .epsilon = 1e-5, .momentum = 0.25};
  how.old_mean = old_mean.data();
  how.old_variance = old_variance.data();
  how.new_mean = new_mean.data();
  how.new_variance = new_variance.data();
  how.mean = mean.data();
  how.deviation = deviation.data();
  how.y = {y.data(), view};
  batch_norm(nullptr, how);
  EXPECT_FLOAT_EQ(new_mean[0], 0.75F * 10 + 0.25F * 4);
  EXPECT_FLOAT_EQ(new_variance[0], 0.75F * 2 + 0.25F * 20 / 3);
  new_mean = new_variance = {0};
  run_statistics(nullptr, {mean.data(), deviation.data(), 1, 4, 1e-5, 0.25, old_mean.data(), old_variance.data(),
                           new_mean.data(), new_variance.data()});
  EXPECT_FLOAT_EQ(new_mean[0], 0.75F * 10 + 0.25F * 4);
  EXPECT_NEAR(new_variance[0], 0.75F * 2 + 0.25F * 20 / 3, 1e-5);
}

TEST(KernelsForCuda, layer_norm_scales_each_row_to_its_own_mean_and_deviation) {
  const Floats x = random_floats(12, 15), scale{1, 2, 3, 4}, shift{4, 3, 2, 1};
  Floats y(12), mean(3), deviation(3);
  layer_norm(nullptr, {.x = x.data(),
                       .rows = 3,
                       .length = 4,
                       .scale = scale.data(),
                       .shift = shift.data(),
                       .epsilon = 1e-5,
                       .y = y.data(),
                       .mean = mean.data(),
                       .deviation = deviation.data()});
  double of_row = 0, squares = 0;
  for (std::size_t i = 4; i < 8; ++i) of_row += x[i] / 4.0;
  for (std::size_t i = 4; i < 8; ++i) squares += (x[i] - of_row) * (x[i] - of_row) / 4;
  for (std::size_t i = 4; i < 8; ++i)
    EXPECT_NEAR(y[i], (x[i] - of_row) / std::sqrt(squares + 1e-5) * scale[i - 4] + shift[i - 4], 1e-5);
  EXPECT_NEAR(mean[1], of_row, 1e-6);
  EXPECT_NEAR(deviation[1], 1 / std::sqrt(squares + 1e-5), 1e-5);
}

TEST(KernelsForCuda, layer_norm_has_the_gradients_of_differences) {
  const Floats x = random_floats(20, 16), g = random_floats(20, 17), scale{0.5F, 2, -1, 1, 3}, shift{1, 0, 3, 2, 1};
  Floats mean(4), deviation(4);
  const auto run = [&](const Floats& at, const Floats& by, const Floats& plus, Floats& middle, Floats& inverse) {
    Floats y(20);
    layer_norm(nullptr, {.x = at.data(),
                         .rows = 4,
                         .length = 5,
                         .scale = by.data(),
                         .shift = plus.data(),
                         .epsilon = 1e-3,
                         .y = y.data(),
                         .mean = middle.data(),
                         .deviation = inverse.data()});
    return y;
  };
  run(x, scale, shift, mean, deviation);
  Floats of_x(20), of_scale(5), of_shift(5), unused(4);
  LayerNormBackward how{.gradient = g.data(), .x = x.data(), .rows = 4, .length = 5};
  how.mean = mean.data();
  how.deviation = deviation.data();
  how.scale = scale.data();
  how.of_x = of_x.data();
  how.of_scale = of_scale.data();
  how.of_shift = of_shift.data();
  layer_norm_backward(nullptr, how);
  expect_near(of_x, by_differences([&](const Floats& at) { return run(at, scale, shift, unused, unused); }, x, g),
              5e-3F);
  expect_near(of_scale, by_differences([&](const Floats& at) { return run(x, at, shift, unused, unused); }, scale, g),
              1e-3F);
  expect_near(of_shift, by_differences([&](const Floats& at) { return run(x, scale, at, unused, unused); }, shift, g),
              1e-3F);
}

}  // namespace
}  // namespace kit_cuda
