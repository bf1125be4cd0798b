// SPDX-License-Identifier: Apache-2.0
// The one-dimensional transforms of F(m,3) on vectors of channels: input B^T d, weights G g (in float64), output A^T m,
// after Cook and Toom with the points 0, +-p, (+-q,) infinity. Applied to rows, then to columns, they give
// F(m x m, 3x3).
#pragma once

#include "vector.hpp"

namespace kit::kernels {

template <int m>
struct Transform;

// Points 0, +-1, infinity.
template <>
struct Transform<2> {
  static constexpr int kSize = 4;

  static KIT_INLINE void input(const Vector (&d)[4], Vector (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
  }
  static KIT_INLINE void output(const Vector (&v)[4], Vector (&y)[2]) {
    y[0] = v[0] + v[1] + v[2];
    y[1] = v[1] - v[2] + v[3];
  }
  template <typename Number>
  static KIT_INLINE void weights(const Number (&g)[3], Number (&u)[4]) {
    u[0] = g[0];
    u[1] = 0.5 * (g[0] + g[1] + g[2]);
    u[2] = 0.5 * (g[0] - g[1] + g[2]);
    u[3] = g[2];
  }
};

// Points 0, +-p, +-q, infinity.
template <>
struct Transform<4> {
  static constexpr int kSize = 6;
  // Exact in float32 with their powers; half the rounding error of the customary 1 and 2 (docs/results: kernels).
  static constexpr double p = 0.625, q = 1.5;
  static constexpr float p1 = float(p), p2 = float(p * p), p3 = float(p * p * p);
  static constexpr float q1 = float(q), q2 = float(q * q), q3 = float(q * q * q);
  static constexpr float product = float(p * p * q * q), sum = float(p * p + q * q);

  static KIT_INLINE void input(const Vector (&d)[6], Vector (&v)[6]) {
    const Vector even_p = d[4] - q2 * d[2], odd_p = p1 * (d[3] - q2 * d[1]);
    const Vector even_q = d[4] - p2 * d[2], odd_q = q1 * (d[3] - p2 * d[1]);
    v[0] = product * d[0] - sum * d[2] + d[4];
    v[1] = even_p + odd_p;
    v[2] = even_p - odd_p;
    v[3] = even_q + odd_q;
    v[4] = even_q - odd_q;
    v[5] = product * d[1] - sum * d[3] + d[5];
  }
  static KIT_INLINE void output(const Vector (&v)[6], Vector (&y)[4]) {
    const Vector plus_p = v[1] + v[2], minus_p = v[1] - v[2];
    const Vector plus_q = v[3] + v[4], minus_q = v[3] - v[4];
    y[0] = v[0] + plus_p + plus_q;
    y[1] = p1 * minus_p + q1 * minus_q;
    y[2] = p2 * plus_p + q2 * plus_q;
    y[3] = p3 * minus_p + q3 * minus_q + v[5];
  }
  template <typename Number>
  static KIT_INLINE void weights(const Number (&g)[3], Number (&u)[6]) {
    constexpr double norm_p = 1 / (2 * p * p * (p * p - q * q)), norm_q = 1 / (2 * q * q * (q * q - p * p));
    const Number even_p = norm_p * g[0] + p * p * norm_p * g[2], odd_p = p * norm_p * g[1];
    const Number even_q = norm_q * g[0] + q * q * norm_q * g[2], odd_q = q * norm_q * g[1];
    u[0] = g[0] * (1 / (p * p * q * q));
    u[1] = even_p + odd_p;
    u[2] = even_p - odd_p;
    u[3] = even_q + odd_q;
    u[4] = even_q - odd_q;
    u[5] = g[2];
  }
};

}  // namespace kit::kernels
