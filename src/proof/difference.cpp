// SPDX-License-Identifier: Apache-2.0
#include "proof/difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace strata::proof {

Difference difference(const TensorView& actual, const TensorView& expected, double floor_scale) {
  Difference out;
  double squares = 0, wanted_squares = 0, largest = 0;
  in_chunks(actual, expected, [&](std::size_t first, std::span<const double> a, std::span<const double> w) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!std::isfinite(a[i]) || !std::isfinite(w[i])) {
        const bool same = (std::isnan(a[i]) && std::isnan(w[i])) || a[i] == w[i];
        if (!same && out.non_finite++ == 0) out.first_non_finite = first + i;
        continue;
      }
      const double d = std::abs(a[i] - w[i]);
      squares += d * d;
      wanted_squares += w[i] * w[i];
      largest = std::max(largest, d);
      out.magnitude = std::max(out.magnitude, std::abs(w[i]));
    }
  });
  const double norm = std::sqrt(wanted_squares) + floor_scale * std::sqrt(static_cast<double>(expected.elements()));
  if (squares > 0) {
    out.error = norm > 0 ? std::sqrt(squares) / norm : infinity;
    out.largest = out.magnitude + floor_scale > 0 ? largest / (out.magnitude + floor_scale) : infinity;
  }
  return out;
}

double norm(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

TensorView row_of(const TensorView& tensor, std::int64_t row) {
  TensorView out = tensor;
  out.shape.erase(out.shape.begin());
  out.bytes = static_cast<std::size_t>(out.elements()) * element_bytes(tensor.dtype);
  out.data += static_cast<std::size_t>(row) * out.bytes;
  return out;
}

bool same_bytes(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}

}  // namespace strata::proof
