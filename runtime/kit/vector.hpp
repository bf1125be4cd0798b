// SPDX-License-Identifier: Apache-2.0
// What the kit's own kernels share: a block of channels as one vector of the machine that compiles it, the blocked
// layout N C/b H W b, and what a kernel does to its result before it stores it. Plain C++20 with the vector extensions
// of GCC and Clang; without AVX the compiler splits the vectors.
#pragma once

#include <cstddef>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed to inlined functions only
#endif

// Channels of a block; the caller may choose, for tests: any width is right with any instructions.
#ifndef KIT_BLOCK
#ifdef __AVX512F__
#define KIT_BLOCK 16
#else
#define KIT_BLOCK 8
#endif
#endif

#define KIT_INLINE inline __attribute__((always_inline))

namespace kit::kernels {

inline constexpr int kBlock = KIT_BLOCK;
// Accumulators that fit in registers are kRows x 2 blocks: 32 registers with AVX-512, else 16.
#ifdef __AVX512F__
inline constexpr int kRows = 12;
#else
inline constexpr int kRows = 6;
#endif

inline constexpr std::ptrdiff_t kLine = 16;  // floats of a cache line

// One block of channels, as a value.
typedef float Vector __attribute__((vector_size(KIT_BLOCK * sizeof(float))));
// The same anywhere in memory. Of this type there are no variables: Clang takes arrays of it for aligned.
typedef float VectorInMemory __attribute__((vector_size(KIT_BLOCK * sizeof(float)), aligned(4), may_alias));

KIT_INLINE Vector load(const float* from) {
  return *reinterpret_cast<const VectorInMemory*>(from);
}
KIT_INLINE void store(float* to, const Vector& v) {
  *reinterpret_cast<VectorInMemory*>(to) = v;
}

constexpr int divide_up(int a, int b) {
  return (a + b - 1) / b;
}
constexpr int blocks_of(int channels) {
  return divide_up(channels, kBlock);
}
constexpr int padded(int channels) {
  return blocks_of(channels) * kBlock;
}

// The last thing that a kernel does to a sum. `clamp` to [low, high], which must hold 0 so that padded channels stay 0.
// NaN stays NaN, as in PyTorch.
struct Activation {
  enum class Kind : unsigned char { none, relu, clamp };
  Kind kind = Kind::none;
  float low = 0, high = 0;
};

KIT_INLINE Vector activate(Vector v, const Activation& activation) {
  if (activation.kind == Activation::Kind::none) return v;
  const float low = activation.kind == Activation::Kind::relu ? 0.0F : activation.low;
  v = v < low ? Vector{} + low : v;
  if (activation.kind == Activation::Kind::clamp) v = v > activation.high ? Vector{} + activation.high : v;
  return v;
}

// Part `index` of `count` things shared out among `parts`, as evenly as may be: [begin, end).
struct Range {
  int begin, end;
};
constexpr Range part_of(int count, int parts, int index) {
  const int each = count / parts, rest = count % parts;
  const int begin = index * each + (index < rest ? index : rest);
  return {begin, begin + each + (index < rest ? 1 : 0)};
}

}  // namespace kit::kernels
