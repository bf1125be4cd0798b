// SPDX-License-Identifier: Apache-2.0
// Functions, sums and products, element by element, in any layout: operands may be broadcast to the result and lie
// otherwise. A result may be an operand, if it lies like it.
#pragma once

#include <initializer_list>

#include "kit_cuda/kernels/function.hpp"
#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

// What happens to a value before it is stored: up to three functions, or sums or products with another tensor.
struct Then {
  enum class Kind : std::uint8_t { function, add, multiply };
  struct PostOp {
    Kind kind = Kind::function;
    Function function = {};
    Source with = {};
  };
  static constexpr int most = 3;
  PostOp posts[most] = {};
  int count = 0;

  Then() = default;
  Then(std::initializer_list<PostOp> all) {
    if (all.size() > most) throw std::length_error("more than 3 operations behind another");
    for (const PostOp& post : all) posts[count++] = post;
  }
};
inline Then::PostOp then_apply(Function function) {
  return {Then::Kind::function, function, {}};
}
inline Then::PostOp then_add(Source with) {
  return {Then::Kind::add, {}, with};
}
inline Then::PostOp then_multiply(Source with) {
  return {Then::Kind::multiply, {}, with};
}

void apply(Stream stream, Source x, Function function, Target y, const Then& then = {});

enum class Binary : std::uint8_t { add, subtract, multiply, divide };
// x (how) alpha y
void combine(Stream stream, Source x, Binary how, Source y, float alpha, Target z, const Then& then = {});

// scale x + shift, of one element for each place of dimension 1; either may be null.
void scale_shift(Stream stream, Source x, const float* scale, const float* shift, Target y, const Then& then = {});
// (x - mean) / sqrt(variance + epsilon) scale + shift likewise.
struct FixedStatistics {
  const float *mean, *variance, *scale = nullptr, *shift = nullptr;
  double epsilon = 0;
};
void normalise(Stream stream, Source x, const FixedStatistics& statistics, Target y, const Then& then = {});

// gradient times the function's derivative; `data` is the function's operand, or its result where `of_result`.
void apply_backward(Stream stream, Source gradient, Source data, Function function, bool of_result, Target to);

}  // namespace kit_cuda
