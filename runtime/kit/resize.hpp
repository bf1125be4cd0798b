// SPDX-License-Identifier: Apache-2.0
// Images brought to another size, by PyTorch's rules of which pixels a new one is made of. No library is needed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kit/tensor.hpp"

namespace kit {

// The nearest pixel by PyTorch's `nearest` and `nearest-exact`; by lines; by cubics (Keys 1981, a = -0.75).
enum class Resizing : std::uint8_t { nearest, nearest_exact, linear, cubic };

namespace resizing {

// Of one new pixel along an axis: the old ones and their shares.
struct Taps {
  static constexpr int most = 4;
  Extent at[most] = {};
  float share[most] = {};
};

// `scale`: old pixels a new one; 0: as the extents say. `corners`: the outermost pixels lie on each other.
inline float scale_of(Extent from, Extent to, double scale, bool corners) {
  if (corners) return to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0.0F;
  return scale > 0 ? static_cast<float>(scale) : static_cast<float>(from) / static_cast<float>(to);
}

inline int taps_of(Resizing how) {
  return how == Resizing::linear ? 2 : how == Resizing::cubic ? 4 : 1;
}

inline Taps cubic_taps(Extent first, float t, Extent from) {
  constexpr float a = -0.75F;
  const auto near = [&](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [&](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  Taps taps{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (Extent i = 0; i < Taps::most; ++i) taps.at[i] = std::clamp<Extent>(first - 1 + i, 0, from - 1);
  return taps;
}

inline std::vector<Taps> taps_along(Resizing how, Extent from, Extent to, double given_scale, bool corners) {
  const float scale = scale_of(from, to, given_scale, corners);
  std::vector<Taps> all;
  for (Extent i = 0; i < to; ++i) {
    const auto place = static_cast<float>(i);
    if (how == Resizing::nearest || how == Resizing::nearest_exact) {
      const float source = std::floor((how == Resizing::nearest ? place : place + 0.5F) * scale);
      all.push_back({{std::min(static_cast<Extent>(source), from - 1)}, {1}});
      continue;
    }
    float source = corners ? scale * place : scale * (place + 0.5F) - 0.5F;
    if (how == Resizing::linear) source = std::max(source, 0.0F);
    const auto first = std::min(static_cast<Extent>(std::floor(source)), from - 1);
    const float rest = std::clamp(source - static_cast<float>(first), 0.0F, 1.0F);
    all.push_back(how == Resizing::cubic ? cubic_taps(first, rest, from)
                                         : Taps{{first, first + (first < from - 1 ? 1 : 0)}, {1 - rest, rest}});
  }
  return all;
}

// Images [outer, height, width, inner] of which `rows` and `columns` say what the new pixels are.
struct Resize {
  Extent outer = 1, height = 1, width = 1, inner = 1;
  int taps = 1;
  std::vector<Taps> rows, columns;

  void run(const float* source, float* result) const {
    const auto new_height = static_cast<Extent>(rows.size()), new_width = static_cast<Extent>(columns.size());
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < outer * new_height; ++row) {
      const float* image = source + row / new_height * height * width * inner;
      float* to = result + row * new_width * inner;
      const Taps& y = rows[static_cast<std::size_t>(row % new_height)];
      for (Extent x = 0; x < new_width; ++x, to += inner) pixel(image, y, columns[static_cast<std::size_t>(x)], to);
    }
  }

 private:
  void pixel(const float* image, const Taps& y, const Taps& x, float* to) const {
    std::fill_n(to, inner, 0.0F);
    for (int i = 0; i < taps; ++i)
      for (int j = 0; j < taps; ++j) {
        const float share = y.share[i] * x.share[j];
        const float* from = image + (y.at[i] * width + x.at[j]) * inner;
        if (taps == 1)
          std::copy_n(from, inner, to);
        else
          for (Extent c = 0; c < inner; ++c) to[c] += share * from[c];
      }
  }
};

// The reverse of taps: for each old pixel the new ones that it is in, and its shares of them.
struct Shares {
  std::vector<Extent> begin{0};  // of each old pixel's among those that follow, and an end
  std::vector<Extent> at;
  std::vector<float> share;
};
inline Shares shares_of(const std::vector<Taps>& taps, int count, Extent from) {
  Shares all;
  for (Extent old = 0; old < from; ++old) {
    for (std::size_t i = 0; i < taps.size(); ++i)
      for (int t = 0; t < count; ++t) {
        if (taps[i].at[t] != old || taps[i].share[t] == 0) continue;
        all.at.push_back(static_cast<Extent>(i));
        all.share.push_back(taps[i].share[t]);
      }
    all.begin.push_back(static_cast<Extent>(all.at.size()));
  }
  return all;
}

// The gradient of Resize: images [outer, height, width, inner] are gradients of new pixels.
struct ResizeBackward {
  Extent outer = 1, height = 1, width = 1, inner = 1;
  Shares rows, columns;

  void run(const float* gradient, float* result) const {
    const auto old_height = static_cast<Extent>(rows.begin.size()) - 1,
               old_width = static_cast<Extent>(columns.begin.size()) - 1;
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < outer * old_height; ++row) {
      const float* image = gradient + row / old_height * height * width * inner;
      float* to = result + row * old_width * inner;
      for (Extent x = 0; x < old_width; ++x, to += inner) pixel(image, row % old_height, x, to);
    }
  }

 private:
  void pixel(const float* image, Extent row, Extent column, float* to) const {
    const auto y = static_cast<std::size_t>(row), x = static_cast<std::size_t>(column);
    std::fill_n(to, inner, 0.0F);
    for (Extent i = rows.begin[y]; i < rows.begin[y + 1]; ++i)
      for (Extent j = columns.begin[x]; j < columns.begin[x + 1]; ++j) {
        const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
        const float share = rows.share[a] * columns.share[b];
        const float* from = image + (rows.at[a] * width + columns.at[b]) * inner;
        for (Extent c = 0; c < inner; ++c) to[c] += share * from[c];
      }
  }
};

}  // namespace resizing
}  // namespace kit
