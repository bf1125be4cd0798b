// SPDX-License-Identifier: Apache-2.0
// Values for tests of kernels: drawn, compared, and gradients by differences.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "kit_cuda/kernels/move.hpp"

namespace kit_cuda {

using Floats = std::vector<float>;
using Extents = std::vector<Index>;

inline View plain(const Extents& extents) {
  return row_major(extents.data(), static_cast<int>(extents.size()));
}
inline View last(const Extents& extents) {
  return channels_last(extents.data(), static_cast<int>(extents.size()));
}

inline Floats random_floats(Index count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Floats all(static_cast<std::size_t>(count));
  for (auto& value : all) value = normal(engine);
  return all;
}

inline void expect_near(const Floats& got, const Floats& expected, float within = 1e-5F) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], within) << "element " << i;
}

// The gradient of sum(weights run(x)) by differences, in float64 sums.
inline Floats by_differences(const std::function<Floats(const Floats&)>& run, Floats x, const Floats& weights) {
  Floats gradient;
  constexpr float step = 1e-2F;
  const auto score = [&] {
    const Floats y = run(x);
    return std::inner_product(y.begin(), y.end(), weights.begin(), 0.0);
  };
  for (auto& value : x) {
    const float before = value;
    value = before + step;
    const double above = score();
    value = before - step;
    gradient.push_back(static_cast<float>((above - score()) / (2 * step)));
    value = before;
  }
  return gradient;
}

}  // namespace kit_cuda
