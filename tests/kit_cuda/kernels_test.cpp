// SPDX-License-Identifier: Apache-2.0
// The kernels for CUDA: formulas, strides, rows and edges. In strata_unit as loops in host memory; on a device
// (kernels_on_device, where launches and sums by several threads show) the same tests, so that all that a kernel reads
// or writes lies on the heap (on_device.cpp).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "floats.hpp"
#include "kit_cuda/kernels/descent.hpp"
#include "kit_cuda/kernels/dropout.hpp"
#include "kit_cuda/kernels/elementwise.hpp"
#include "kit_cuda/kernels/move.hpp"
#include "kit_cuda/kernels/pooling.hpp"
#include "kit_cuda/kernels/reduction.hpp"
#include "kit_cuda/kernels/softmax.hpp"

namespace kit_cuda {
namespace {

Floats moved(const Floats& from, const View& as, const View& to) {
  Floats result(from.size());
  copy(nullptr, {from.data(), as}, {result.data(), to});
  return result;
}

TEST(CudaKernels, conversions_round_to_the_nearest_bfloat16_in_any_layout_and_back_is_exact) {
  const Extents extents{2, 3, 4};
  Floats floats(24, 0.0F);
  // 1 + 2^-8 lies in the middle of two neighbours: to the even one, as 1 + 3 2^-8 does
  const Floats odd{1.00390625F, 1.01171875F, 1.0040F, -3.1415926F, 3e38F, 3.4e38F, 1e-40F};
  std::copy(odd.begin(), odd.end(), floats.begin());
  floats[7] = std::numeric_limits<float>::infinity();
  floats[8] = std::numeric_limits<float>::quiet_NaN();
  std::vector<Bfloat16> half(24), other(24);
  convert(nullptr, Source{floats.data(), plain(extents)}, Strided<Bfloat16>{half.data(), last(extents)});
  convert(nullptr, Strided<const Bfloat16>{half.data(), last(extents)},
          Strided<Bfloat16>{other.data(), plain(extents)});
  Floats back(24);
  convert(nullptr, Strided<const Bfloat16>{other.data(), plain(extents)}, Target{back.data(), plain(extents)});
  const float infinite = std::numeric_limits<float>::infinity();
  const Floats expected{1.0F, 1.015625F, 1.0078125F, -3.140625F, 2.9991e38F, infinite, 1e-40F, infinite};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(back[i] == expected[i] || std::abs(back[i] / expected[i] - 1) < (i == 6 ? 0.1F : 0x1p-8F))
        << i << ": " << back[i];
  EXPECT_EQ(back[0], 1.0F);
  EXPECT_EQ(back[1], 1.015625F);
  EXPECT_EQ(back[2], 1.0078125F);
  EXPECT_TRUE(std::isnan(back[8]));
  for (std::size_t i = 9; i < back.size(); ++i) EXPECT_EQ(back[i], 0.0F);
}

TEST(KernelsForCuda, a_tensor_goes_to_channels_last_and_back) {
  const Extents dims{2, 3, 4, 5};
  const Floats x = random_floats(120, 1);
  const Floats there = moved(x, plain(dims), last(dims));
  EXPECT_EQ(there[1], x[20]);
  EXPECT_EQ(moved(there, last(dims), plain(dims)), x);
}

TEST(KernelsForCuda, a_walk_joins_dimensions_that_lie_one_behind_the_other_in_all_tensors) {
  const Extents dims{2, 3, 4, 5};
  EXPECT_EQ(walk<2>({plain(dims), plain(dims)}).rank, 1);
  EXPECT_EQ(walk<2>({last(dims), last(dims)}).rank, 1);
  EXPECT_EQ(walk<2>({plain(dims), last(dims)}).rank, 3);
  EXPECT_EQ(walk<2>({plain({3, 1, 1}), plain(dims)}).rank, 3);
}

TEST(KernelsForCuda, operands_are_broadcast_and_may_lie_otherwise_than_the_result) {
  const Extents dims{2, 3, 2, 2};
  const Floats x = random_floats(24, 2), y = random_floats(3, 3);
  const Floats there = moved(x, plain(dims), last(dims));
  Floats z(24);
  combine(nullptr, {there.data(), last(dims)}, Binary::subtract, {y.data(), plain({3, 1, 1})}, 2,
          {z.data(), plain(dims)}, {then_add({x.data(), plain(dims)}), then_apply(kit::relu())});
  for (std::size_t i = 0; i < 24; ++i) EXPECT_FLOAT_EQ(z[i], std::max(0.0F, 2 * x[i] - 2 * y[i / 4 % 3]));
}

TEST(KernelsForCuda, derivatives_are_those_of_the_functions) {
  const View view = plain({41});
  Floats x(41), ones(41, 1.0F);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.23F * static_cast<float>(i) - 4.513F;
  for (const Function f :
       {kit::relu(0.1F), kit::clip(-1, 2), kit::hardswish(), kit::hardsigmoid(), kit::silu(), kit::sigmoid(),
        kit::tangent(), kit::elu(0.7F), kit::gelu(), kit::gelu_tanh(), kit::absolute(), kit::line(3, 1)}) {
    const auto run = [&](const Floats& at) {
      Floats y(at.size());
      apply(nullptr, {at.data(), view}, f, {y.data(), view});
      return y;
    };
    Floats gradient(41), by_result(41);
    const Floats y = run(x);
    apply_backward(nullptr, {ones.data(), view}, {x.data(), view}, f, false, {gradient.data(), view});
    expect_near(gradient, by_differences(run, x, ones), 2e-3F);
    if (f.kind != Function::Kind::logistic && f.kind != Function::Kind::tanh && f.kind != Function::Kind::elu) continue;
    apply_backward(nullptr, {ones.data(), view}, {y.data(), view}, f, true, {by_result.data(), view});
    expect_near(by_result, gradient);
  }
}

TEST(KernelsForCuda, NaN_is_handed_on_by_activations_pooling_and_maxima) {
  const float nan = std::nanf("");
  const Floats x{1, nan, 2, 3};
  const View view = plain({1, 1, 2, 2}), one = plain({1, 1, 1, 1});
  Floats y(4), most(1);
  for (const Function f : {kit::relu(), kit::clip(0, 6), kit::hardswish(), kit::elu()}) {
    apply(nullptr, {x.data(), view}, f, {y.data(), view});
    EXPECT_TRUE(std::isnan(y[1]));
  }
  reduce(nullptr, {x.data(), view}, Reduction::largest, {most.data(), one});
  EXPECT_TRUE(std::isnan(most[0]));
  most[0] = 0;
  max_pool<std::uint8_t>(nullptr, {x.data(), view}, {{2, 2}, {2, 2}, {1, 1}, {}}, {most.data(), one}, {});
  EXPECT_TRUE(std::isnan(most[0]));
}

TEST(KernelsForCuda, softmax_and_its_logarithm_have_the_gradients_of_differences_along_any_axis) {
  const Extents dims{2, 3, 4};
  const Floats x = random_floats(24, 6), g = random_floats(24, 7);
  const View view = plain(dims);
  for (int axis = 0; axis < 3; ++axis)
    for (const bool logarithm : {false, true}) {
      const auto run = [&](const Floats& at) {
        Floats y(24);
        softmax(nullptr, {at.data(), view}, axis, logarithm, {y.data(), view});
        return y;
      };
      const Floats y = run(x);
      Floats of_x(24);
      softmax_backward(nullptr, {g.data(), view}, {y.data(), view}, axis, logarithm, {of_x.data(), view});
      expect_near(of_x, by_differences(run, x, g), 1e-3F);
    }
}

TEST(KernelsForCuda, the_likelihood_is_of_the_labels_and_a_label_that_is_no_class_is_told) {
  const Floats scores{-1, -2, -3, -4, -5, -6};
  const View view = plain({2, 3});
  std::vector<std::int64_t> labels{2, 0};
  const auto fault = std::make_unique<Index>(0);
  Floats loss(1), count(1);
  likelihood(nullptr, {scores.data(), view}, labels.data(), loss.data(), count.data(), fault.get());
  EXPECT_FLOAT_EQ(loss[0], 3.5F);
  EXPECT_FLOAT_EQ(count[0], 2);
  EXPECT_EQ(*fault, 0);
  Floats to(6);
  likelihood_backward(nullptr, nullptr, labels.data(), {to.data(), view});
  EXPECT_EQ(to, (Floats{0, 0, -0.5F, -0.5F, 0, 0}));
  labels[1] = 3;
  likelihood(nullptr, {scores.data(), view}, labels.data(), loss.data(), count.data(), fault.get());
  EXPECT_EQ(*fault, 2);
}

TEST(KernelsForCuda, sums_means_and_norms_are_over_any_dimensions) {
  const Floats x = random_floats(24, 8);
  const View view = last({2, 3, 2, 2});
  Floats sums(2), mean(3), norm(1);
  reduce(nullptr, {x.data(), view}, Reduction::sum, {sums.data(), plain({2, 1, 1, 1})});
  reduce(nullptr, {x.data(), view}, Reduction::mean, {mean.data(), plain({1, 3, 1, 1})});
  reduce(nullptr, {x.data(), view}, Reduction::norm, {norm.data(), plain({1, 1, 1, 1})});
  double first = 0, of_channel = 0, squares = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    first += i < 12 ? x[i] : 0;
    of_channel += i % 3 == 1 ? x[i] : 0;
    squares += static_cast<double>(x[i]) * x[i];
  }
  EXPECT_NEAR(sums[0], first, 1e-5);
  EXPECT_NEAR(mean[1], of_channel / 8, 1e-5);
  EXPECT_NEAR(norm[0], std::sqrt(squares), 1e-5);
}

Window window_of(Index kernel, Index stride, Index before, Index dilation = 1) {
  return {{kernel, kernel}, {stride, stride}, {dilation, dilation}, {before, before}};
}

TEST(KernelsForCuda, gradients_of_maximum_pooling_go_where_the_maxima_were_by_either_index_and_layout) {
  const Extents dims{2, 3, 7, 6}, out{2, 3, 4, 3};
  const Floats x = random_floats(252, 9), g = random_floats(72, 10);
  const Window window = window_of(3, 2, 1);
  Floats first;
  for (const bool channels : {false, true}) {
    const View from = channels ? last(dims) : plain(dims), to = channels ? last(out) : plain(out);
    const Floats here = moved(x, plain(dims), from), gradient = moved(g, plain(out), to);
    Floats y(72), by_byte(252), by_place(252);
    std::vector<std::uint8_t> bytes(72);
    std::vector<std::int64_t> places(72);
    max_pool<std::uint8_t>(nullptr, {here.data(), from}, window, {y.data(), to}, {bytes.data(), to});
    max_pool<std::int64_t>(nullptr, {here.data(), from}, window, {y.data(), to}, {places.data(), to});
    max_pool_backward<std::uint8_t>(nullptr, {gradient.data(), to}, {bytes.data(), to}, window, {by_byte.data(), from});
    max_pool_backward<std::int64_t>(nullptr, {gradient.data(), to}, {places.data(), to}, window,
                                    {by_place.data(), from});
    EXPECT_EQ(by_byte, by_place);
    const Floats back = moved(by_byte, from, plain(dims));
    if (first.empty()) first = back;
    EXPECT_EQ(back, first);
  }
  const auto run = [&](const Floats& at) {
    Floats y(72);
    max_pool<std::uint8_t>(nullptr, {at.data(), plain(dims)}, window, {y.data(), plain(out)}, {});
    return y;
  };
  // far from a tie the differences are exact; next to one they are between two gradients
  const Floats expected = by_differences(run, x, g);
  int near = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) near += std::abs(first[i] - expected[i]) < 1e-2F ? 1 : 0;
  EXPECT_GT(near, 245);
}

TEST(KernelsForCuda, averages_over_windows_of_any_kind_have_the_gradients_of_differences) {
  const Extents dims{1, 2, 7, 5};
  struct Case {
    Averaging how;
    Extents out;
  };
  std::vector<Case> cases{{{window_of(3, 2, 1)}, {1, 2, 4, 3}},
                          {{window_of(3, 2, 1), false, false}, {1, 2, 4, 3}},
                          {{window_of(2, 2, 0), false, true}, {1, 2, 4, 3}},  // ceil_mode: the last one is cut
                          {{window_of(2, 3, 1), false, true, 3}, {1, 2, 3, 2}},
                          {{{}, true}, {1, 2, 3, 2}},
                          {{{}, true}, {1, 2, 9, 7}},
                          {{{}, true}, {1, 2, 1, 1}}};
  const Floats x = random_floats(70, 11);
  for (const auto& [how, out] : cases) {
    const View to = plain(out);
    const Floats g = random_floats(to.count(), 12);
    const auto run = [&, &own = how](const Floats& at) {
      Floats y(g.size());
      average_pool(nullptr, {at.data(), plain(dims)}, own, {y.data(), to});
      return y;
    };
    Floats of_x(70);
    average_pool_backward(nullptr, {g.data(), to}, how, {of_x.data(), plain(dims)});
    expect_near(of_x, by_differences(run, x, g), 1e-3F);
  }
}

TEST(KernelsForCuda, an_average_counts_what_PyTorch_counts) {
  const Floats x{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const View view = plain({1, 1, 3, 3}), to = plain({1, 1, 2, 2});
  Floats y(4);
  average_pool(nullptr, {x.data(), view}, {window_of(2, 2, 0)}, {y.data(), to});
  EXPECT_EQ(y, (Floats{3, 4.5F, 7.5F, 9}));
  average_pool(nullptr, {x.data(), view}, {window_of(2, 2, 1)}, {y.data(), to});
  EXPECT_EQ(y, (Floats{0.25F, 1.25F, 2.75F, 7}));
}

TEST(KernelsForCuda, rolls_go_round_the_end_and_rows_are_looked_up_from_either_end) {
  const Floats x{1, 2, 3, 4, 5, 6};
  Floats y(6), rows(6);
  const Index shifts[] = {1, -1};
  roll(nullptr, {x.data(), plain({2, 3})}, shifts, {y.data(), plain({2, 3})});
  EXPECT_EQ(y, (Floats{5, 6, 4, 2, 3, 1}));
  std::vector<std::int64_t> expected{-1, 0};
  const auto fault = std::make_unique<Index>(0);
  look_up(nullptr, x.data(), 2, 3, expected.data(), 2, rows.data(), fault.get());
  EXPECT_EQ(rows, (Floats{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(*fault, 0);
  expected[1] = 2;
  look_up(nullptr, x.data(), 2, 3, expected.data(), 2, rows.data(), fault.get());
  EXPECT_EQ(*fault, 2);
}

TEST(KernelsForCuda, rows_that_a_lookup_took_twice_add_up_and_one_that_it_left_is_zero) {
  const Floats g{1, 2, 3, 4, 5, 6};
  Floats table(6, 9);
  std::vector<std::int64_t> rows{2, -1, 0};
  const auto fault = std::make_unique<Index>(0);
  add_rows(nullptr, g.data(), rows.data(), 3, table.data(), 3, 2, fault.get());
  EXPECT_EQ(table, (Floats{5, 6, 0, 0, 4, 6}));
  EXPECT_EQ(*fault, 0);
  rows[1] = 3;
  add_rows(nullptr, g.data(), rows.data(), 3, table.data(), 3, 2, fault.get());
  EXPECT_EQ(*fault, 2);
}

TEST(KernelsForCuda, dropout_keeps_its_share_draws_anew_each_step_and_can_be_off) {
  constexpr Index count = 20000;
  const View view = plain({count});
  const Floats x(count, 1.0F);
  Floats y(count), g(count);
  std::vector<std::uint8_t> first(count), second(count);
  const auto state = std::make_unique<DropoutState>();
  const Dropout how{state.get(), 7, 0.25};
  count_step(nullptr, state.get());
  dropout(nullptr, how, {x.data(), view}, {first.data(), view}, {y.data(), view});
  const double share = std::accumulate(first.begin(), first.end(), 0.0) / count;
  EXPECT_NEAR(share, 0.75, 0.01);
  dropout_backward(nullptr, state.get(), {x.data(), view}, {first.data(), view}, 1 / 0.75F, {g.data(), view});
  EXPECT_EQ(g, y);
  count_step(nullptr, state.get());
  dropout(nullptr, how, {x.data(), view}, {second.data(), view}, {y.data(), view});
  EXPECT_NE(first, second);
  state->on = 0;
  dropout(nullptr, how, {x.data(), view}, {second.data(), view}, {y.data(), view});
  EXPECT_EQ(y, x);
}

TEST(KernelsForCuda, many_parameters_at_once_get_the_update_that_each_gets_alone) {
  const Sgd sgd{0.1, 0.9, 0.2, 0.01, true};
  for (const bool first : {true, false}) {
    const auto rates = std::make_unique<Rates>(rates_of(sgd, !first));
    Floats w = random_floats(10000, 13), v(10000, first ? std::nanf("") : 0.5F), g = random_floats(10000, 14);
    Floats together = w, velocity = v;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double d = g[i] + 0.01 * w[i], before = first ? 0 : 0.9 * v[i], now = before + (first ? 1 : 0.8) * d;
      w[i] = static_cast<float>(w[i] - 0.1 * (d + 0.9 * now));
    }
    std::vector<Piece> pieces;
    add_pieces(pieces, {together.data(), velocity.data()}, g.data(), 10000);
    EXPECT_EQ(pieces.size(), 2U);
    Floats alone = together, own = velocity;
    descend_all(nullptr, rates.get(), pieces.data(), 2);
    descend(nullptr, *rates, {alone.data(), own.data()}, g.data(), 10000);
    EXPECT_EQ(alone, together);
    EXPECT_EQ(own, velocity);
    expect_near(alone, w);
  }
}

TEST(KernelsForCuda, adam_divides_by_the_root_of_corrected_squares_from_no_buffers_and_from_given_ones) {
  for (const bool decoupled : {false, true})
    for (const bool first : {true, false}) {
      const Adam adam{0.1, 0.8, 0.99, 1e-3, 0.05, decoupled};
      const std::int64_t done = first ? 0 : 6;
      const auto rates = std::make_unique<Rates>(rates_of(adam, done, !first));
      const Floats start = random_floats(9000, 15), g = random_floats(9000, 16);
      Floats w = start, m(9000, first ? std::nanf("") : 0.5F), v(9000, first ? std::nanf("") : 0.25F), expected = w;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double t = static_cast<double>(done) + 1, d = g[i] + (decoupled ? 0 : 0.05 * w[i]);
        const double mean = (first ? 0 : 0.8 * 0.5) + 0.2 * d, square = (first ? 0 : 0.99 * 0.25) + 0.01 * d * d;
        const double u = mean / (1 - std::pow(0.8, t)) / (std::sqrt(square / (1 - std::pow(0.99, t))) + 1e-3);
        expected[i] = static_cast<float>(w[i] - (decoupled ? 0.1 * 0.05 * w[i] : 0) - 0.1 * u);
      }
      std::vector<Piece> pieces;
      add_pieces(pieces, {w.data(), m.data(), v.data()}, g.data(), 9000);
      descend_all(nullptr, rates.get(), pieces.data(), static_cast<Index>(pieces.size()));
      expect_near(w, expected);
    }
}

}  // namespace
}  // namespace kit_cuda
