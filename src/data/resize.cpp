// SPDX-License-Identifier: Apache-2.0
// Rows first: rows of bytes are summed with one weight each. Then columns, eight rows side by side, so that both passes
// are sums of vectors: as the compiler makes them of the loops, and by hand for AVX2, to the same values.
#include "data/resize.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace strata::data {
namespace {

constexpr int weight_bits = 14;  // of a weight of 1
constexpr int kept_bits = 6;     // behind the point, between the passes: 255 << 6 fits 16 bits
constexpr std::size_t lanes = 8;

// What one output value is made of: weights of inputs first, first + 1, ...
struct Taps {
  std::size_t first = 0;
  std::vector<std::int16_t> weights;  // their sum is 1 << weight_bits
};

std::vector<Taps> taps_for(std::size_t in, std::size_t out) {
  const double step = static_cast<double>(in) / static_cast<double>(out);
  const double width = std::max(1.0, step);
  std::vector<Taps> all(out);
  for (std::size_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    const auto first = static_cast<std::size_t>(std::max(0.0, std::floor(centre - width + 0.5)));
    const auto end = std::min(in, static_cast<std::size_t>(std::floor(centre + width + 0.5)));
    std::vector<double> exact;
    double sum = 0;
    for (std::size_t j = first; j < end; ++j) {
      exact.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(j) + 0.5 - centre) / width)));
      sum += exact.back();
    }
    int left = 1 << weight_bits;
    all[i].first = first;
    for (const double weight : exact) {
      all[i].weights.push_back(static_cast<std::int16_t>(std::lround(weight / sum * (1 << weight_bits))));
      left -= all[i].weights.back();
    }
    // so that a plain area stays what it is
    *std::max_element(all[i].weights.begin(), all[i].weights.end()) += static_cast<std::int16_t>(left);
  }
  return all;
}

using Lane = std::int16_t __attribute__((vector_size(2 * lanes)));

struct Work {
  const Image& image;
  std::size_t side;
  std::uint8_t* planes;
  std::vector<Taps> down, across;
  std::size_t count;                  // values of a row, [width, 3], rounded up to whole lanes
  std::vector<std::int32_t> sums;     // of one output row
  std::vector<std::int16_t> rows;     // [lanes, count]: output rows of the first pass
  std::vector<std::int16_t> columns;  // [count, lanes]: the same, rows side by side
};

__attribute__((always_inline)) inline void sum_row(const Work& work, const Taps& taps, std::int32_t* __restrict sums) {
  const std::size_t count = work.image.width * 3;
  std::fill(sums, sums + count, 1 << (weight_bits - kept_bits - 1));
  std::size_t k = 0;
  const auto* rows = work.image.rgb.data() + taps.first * count;
  // Two rows at a time halve the traffic of the sums.
  for (; k + 1 < taps.weights.size(); k += 2) {
    const auto* __restrict one = rows + k * count;
    const auto* __restrict two = one + count;
    const std::int16_t a = taps.weights[k], b = taps.weights[k + 1];
    for (std::size_t x = 0; x < count; ++x)
      sums[x] += std::int32_t{std::int16_t{one[x]}} * a + std::int32_t{std::int16_t{two[x]}} * b;
  }
  for (; k < taps.weights.size(); ++k) {
    const auto* __restrict one = rows + k * count;
    const std::int16_t a = taps.weights[k];
    for (std::size_t x = 0; x < count; ++x) sums[x] += std::int32_t{std::int16_t{one[x]}} * a;
  }
}

__attribute__((always_inline)) inline void sum_columns(const Work& work, std::size_t first_row, std::size_t rows) {
  constexpr int shift = weight_bits + kept_bits;
  const std::size_t area = work.side * work.side;
  for (std::size_t x = 0; x < work.side; ++x) {
    const auto& taps = work.across[x];
    const auto* __restrict at = work.columns.data() + taps.first * 3 * lanes;
    std::int32_t sums[3 * lanes];
    for (auto& sum : sums) sum = 1 << (shift - 1);
    for (const std::int16_t weight : taps.weights) {
      for (std::size_t i = 0; i < 3 * lanes; ++i) sums[i] += std::int32_t{at[i]} * weight;
      at += 3 * lanes;
    }
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t r = 0; r < rows; ++r)
        work.planes[c * area + (first_row + r) * work.side + x] =
            static_cast<std::uint8_t>(std::clamp(sums[c * lanes + r] >> shift, 0, 255));
  }
}

// Eight by eight values at a time.
__attribute__((always_inline)) inline void turn(Work& work) {
  const auto pairs = [](Lane a, Lane b, Lane& low, Lane& high) {
    low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  };
  for (std::size_t x = 0; x < work.count; x += lanes) {
    Lane a[lanes], b[lanes];
    for (std::size_t r = 0; r < lanes; ++r) std::memcpy(&a[r], work.rows.data() + r * work.count + x, sizeof(Lane));
    for (int round = 0; round < 3; ++round) {
      for (std::size_t r = 0; r < lanes / 2; ++r) pairs(a[r], a[r + lanes / 2], b[2 * r], b[2 * r + 1]);
      std::memcpy(a, b, sizeof a);
    }
    std::memcpy(work.columns.data() + x * lanes, a, sizeof a);
  }
}

__attribute__((always_inline)) inline void resample(Work& work) {
  const std::size_t values = work.image.width * 3;
  for (std::size_t y = 0; y < work.side; y += lanes) {
    const auto rows = std::min(lanes, work.side - y);
    for (std::size_t r = 0; r < rows; ++r) {
      sum_row(work, work.down[y + r], work.sums.data());
      auto* __restrict row = work.rows.data() + r * work.count;
      const auto* __restrict sums = work.sums.data();
      for (std::size_t x = 0; x < values; ++x) row[x] = static_cast<std::int16_t>(sums[x] >> (weight_bits - kept_bits));
    }
    turn(work);
    sum_columns(work, y, rows);
  }
}

void resample_anywhere(Work& work) {
  resample(work);
}

#if defined(__x86_64__)
// The same sums, two inputs in one instruction: 16-bit values and weights side by side, multiplied and added in pairs.
__attribute__((target("avx2"))) inline __m256i weight_pair(const Taps& taps, std::size_t k) {
  const int second = k + 1 < taps.weights.size() ? taps.weights[k + 1] : 0;
  return _mm256_set1_epi32(static_cast<int>(static_cast<std::uint16_t>(taps.weights[k])) | (second << 16));
}

__attribute__((target("avx2"))) void sum_row_avx2(const Work& work, const Taps& taps, std::int16_t* row) {
  const std::size_t values = work.image.width * 3;
  const auto* rows = work.image.rgb.data() + taps.first * values;
  const auto start = _mm256_set1_epi32(1 << (weight_bits - kept_bits - 1));
  std::size_t x = 0;
  for (; x + 16 <= values; x += 16) {
    __m256i low = start, high = start;
    for (std::size_t k = 0; k < taps.weights.size(); k += 2) {
      const auto* one = rows + k * values + x;
      const auto* two = k + 1 < taps.weights.size() ? one + values : one;
      const auto a = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(one)));
      const auto b = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(two)));
      const auto weights = weight_pair(taps, k);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights));
    }
    low = _mm256_srai_epi32(low, weight_bits - kept_bits);
    high = _mm256_srai_epi32(high, weight_bits - kept_bits);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + x), _mm256_packs_epi32(low, high));
  }
  for (; x < values; ++x) {
    std::int32_t sum = 1 << (weight_bits - kept_bits - 1);
    for (std::size_t k = 0; k < taps.weights.size(); ++k) sum += std::int32_t{rows[k * values + x]} * taps.weights[k];
    row[x] = static_cast<std::int16_t>(sum >> (weight_bits - kept_bits));
  }
}

// Red and green are 16 values that lie together, blue the 8 behind them.
__attribute__((target("avx2"))) void sum_columns_avx2(const Work& work, std::size_t first_row, std::size_t rows) {
  constexpr int shift = weight_bits + kept_bits;
  const std::size_t area = work.side * work.side;
  const auto start = _mm256_set1_epi32(1 << (shift - 1));
  for (std::size_t x = 0; x < work.side; ++x) {
    const auto& taps = work.across[x];
    __m256i low = start, high = start;
    __m128i blue_low = _mm256_castsi256_si128(start), blue_high = blue_low;
    for (std::size_t k = 0; k < taps.weights.size(); k += 2) {
      const auto* one = work.columns.data() + (taps.first + k) * 3 * lanes;
      const auto* two = k + 1 < taps.weights.size() ? one + 3 * lanes : one;
      const auto weights = weight_pair(taps, k);
      const auto a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(one));
      const auto b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(two));
      const auto c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(one + 2 * lanes));
      const auto d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(two + 2 * lanes));
      const auto blue_weights = _mm256_castsi256_si128(weights);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights));
      blue_low = _mm_add_epi32(blue_low, _mm_madd_epi16(_mm_unpacklo_epi16(c, d), blue_weights));
      blue_high = _mm_add_epi32(blue_high, _mm_madd_epi16(_mm_unpackhi_epi16(c, d), blue_weights));
    }
    const auto both = _mm256_packs_epi32(_mm256_srai_epi32(low, shift), _mm256_srai_epi32(high, shift));
    const auto blue = _mm_packs_epi32(_mm_srai_epi32(blue_low, shift), _mm_srai_epi32(blue_high, shift));
    const auto bytes = _mm256_packus_epi16(both, _mm256_castsi128_si256(blue));
    std::uint8_t out[4 * lanes];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);  // red, blue, green, nothing
    for (std::size_t r = 0; r < rows; ++r) {
      auto* at = work.planes + (first_row + r) * work.side + x;
      at[0] = out[r];
      at[area] = out[2 * lanes + r];
      at[2 * area] = out[lanes + r];
    }
  }
}

__attribute__((target("avx2"))) void resample_avx2(Work& work) {
  for (std::size_t y = 0; y < work.side; y += lanes) {
    const auto rows = std::min(lanes, work.side - y);
    for (std::size_t r = 0; r < rows; ++r) sum_row_avx2(work, work.down[y + r], work.rows.data() + r * work.count);
    turn(work);
    sum_columns_avx2(work, y, rows);
  }
}
#endif

}  // namespace

void resize_to_square(const Image& image, std::size_t side, std::span<std::uint8_t> planes,
                      [[maybe_unused]] bool vectors) {
  const auto count = (image.width * 3 + lanes - 1) / lanes * lanes;
  Work work{.image = image,
            .side = side,
            .planes = planes.data(),
            .down = taps_for(image.height, side),
            .across = taps_for(image.width, side),
            .count = count,
            .sums = std::vector<std::int32_t>(count),
            .rows = std::vector<std::int16_t>(count * lanes),
            .columns = std::vector<std::int16_t>(count * lanes)};
#if defined(__x86_64__)
  if (vectors && __builtin_cpu_supports("avx2")) return resample_avx2(work);
#endif
  resample_anywhere(work);
}

std::vector<std::uint8_t> resize_planes(std::span<const std::uint8_t> image, const Shape& from, const Shape& to) {
  constexpr int shift = weight_bits + kept_bits;
  const auto height = static_cast<std::size_t>(from.height), width = static_cast<std::size_t>(from.width),
             wide = static_cast<std::size_t>(to.width);
  const auto down = taps_for(height, static_cast<std::size_t>(to.height)), across = taps_for(width, wide);
  std::vector<std::uint8_t> out;
  std::vector<std::int32_t> row(width);
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(from.channels); ++channel) {
    const auto* plane = image.data() + channel * height * width;
    for (const auto& taps : down) {
      std::fill(row.begin(), row.end(), 1 << (weight_bits - kept_bits - 1));
      for (std::size_t k = 0; k < taps.weights.size(); ++k)
        for (std::size_t x = 0; x < width; ++x) row[x] += plane[(taps.first + k) * width + x] * taps.weights[k];
      for (auto& value : row) value >>= weight_bits - kept_bits;
      for (const auto& beside : across) {
        std::int32_t sum = 1 << (shift - 1);
        for (std::size_t k = 0; k < beside.weights.size(); ++k) sum += row[beside.first + k] * beside.weights[k];
        out.push_back(static_cast<std::uint8_t>(std::clamp(sum >> shift, 0, 255)));
      }
    }
  }
  return out;
}

}  // namespace strata::data
