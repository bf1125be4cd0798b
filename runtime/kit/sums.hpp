// SPDX-License-Identifier: Apache-2.0
// Sums over rows and over columns: in float32 over short pieces and in float64 over these.
#pragma once

#include <algorithm>

#include "kit/tensor.hpp"

namespace kit {

inline constexpr Extent piece_of_sum = 256, columns_of_sum = 64;

// f(i) summed over a row of `length`.
template <class F>
double sum_of(Extent length, const F& f) {
  double total = 0;
  for (Extent first = 0; first < length; first += piece_of_sum) {
    const Extent end = std::min(first + piece_of_sum, length);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Extent i = first; i < end; ++i) sum += f(i);
    total += static_cast<double>(sum);
  }
  return total;
}

// of_row(r) gives a function of the column, whose values are summed over all rows: totals of `columns` columns, at most
// columns_of_sum.
template <class OfRow>
void sum_columns(Extent rows, Extent columns, const OfRow& of_row, double* totals) {
  std::fill_n(totals, columns, 0.0);
  for (Extent first = 0; first < rows; first += piece_of_sum) {
    float sums[columns_of_sum] = {};
    for (Extent row = first; row < std::min(first + piece_of_sum, rows); ++row) {
      const auto value = of_row(row);
#pragma omp simd
      for (Extent i = 0; i < columns; ++i) sums[i] += value(i);
    }
    for (Extent i = 0; i < columns; ++i) totals[i] += static_cast<double>(sums[i]);
  }
}

}  // namespace kit
