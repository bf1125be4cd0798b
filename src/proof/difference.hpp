// SPDX-License-Identifier: Apache-2.0
// How far one tensor is from another: the two errors of docs/proof.md, accumulated in float64 over tensors of any
// size.
#pragma once

#include <limits>
#include <vector>

#include "common/safetensors.hpp"

namespace strata::proof {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// Over the positions where both are finite.
struct Difference {
  double error = 0;            // ||a - w|| / (||w|| + floor_scale sqrt(n)); infinite if w is all zero and a is not
  double largest = 0;          // max |a - w| / (max |w| + floor_scale)
  double magnitude = 0;        // max |w|
  std::size_t non_finite = 0;  // positions where NaN or Inf (with its sign) of one are not those of the other
  std::size_t first_non_finite = 0;
};

// Both tensors must have the same number of elements.
Difference difference(const TensorView& actual, const TensorView& expected, double floor_scale);

double norm(const std::vector<double>& values);  // Euclidean

// One index of the first dimension, which must exist.
TensorView row_of(const TensorView& tensor, std::int64_t row);

bool same_bytes(const TensorView& a, const TensorView& b);

// Calls visit(first, a, b) with chunks of both tensors as doubles, in order.
template <class Visit>
void in_chunks(const TensorView& a, const TensorView& b, Visit visit) {
  constexpr std::size_t chunk = 2048;
  double left[chunk], right[chunk];
  const auto count = static_cast<std::size_t>(b.elements());
  for (std::size_t first = 0; first < count; first += chunk) {
    const std::size_t n = std::min(chunk, count - first);
    read_doubles(a, first, {left, n});
    read_doubles(b, first, {right, n});
    visit(first, std::span<const double>(left, n), std::span<const double>(right, n));
  }
}

}  // namespace strata::proof
