// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/kernels/elementwise.hpp"

namespace kit_cuda {
namespace {

// Then on the device: places in the operands are the first of `at`.
struct Tail {
  struct One {
    Then::Kind kind;
    Function function;
    const float* with;
  };
  One posts[Then::most];
  int count;

  KIT_DEVICE float operator()(float value, const Index* at) const {
    for (int i = 0; i < count; ++i) {
      const One& post = posts[i];
      if (post.kind == Then::Kind::function)
        value = value_of(post.function, value);
      else if (post.kind == Then::Kind::add)
        value += post.with[at[i]];
      else
        value *= post.with[at[i]];
    }
    return value;
  }
};

Tail tail_of(const Then& then) {
  Tail tail{{}, then.count};
  for (int i = 0; i < then.count; ++i)
    tail.posts[i] = {then.posts[i].kind, then.posts[i].function, then.posts[i].with.data};
  return tail;
}

// Operands of Then first, the result last.
Walk<6> walk_with(const Then& then, const View& x, const View& y, const View& z) {
  const auto with = [&](int i) { return view_or(then.posts[i].with, z); };
  return walk<6>({with(0), with(1), with(2), x, y, z});
}

// A vector over the places of dimension 1.
View by_channel(const View& like) {
  View view = like;
  for (int d = 0; d < view.rank; ++d) view.strides[d] = d == 1 ? 1 : 0;
  return view;
}

}  // namespace

void apply(Stream stream, Source x, Function function, Target y, const Then& then) {
  const auto places = walk_with(then, x.view, x.view, y.view);
  const auto tail = tail_of(then);
  const float* from = x.data;
  float* to = y.data;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[6];
    places.find(i, at);
    to[at[5]] = tail(value_of(function, from[at[3]]), at);
  });
}

void combine(Stream stream, Source x, Binary how, Source y, float alpha, Target z, const Then& then) {
  const auto places = walk_with(then, x.view, y.view, z.view);
  const auto tail = tail_of(then);
  const float *left = x.data, *right = y.data;
  float* to = z.data;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[6];
    places.find(i, at);
    const float a = left[at[3]], b = alpha * right[at[4]];
    const float result = how == Binary::add        ? a + b
                         : how == Binary::subtract ? a - b
                         : how == Binary::multiply ? a * b
                                                   : a / b;
    to[at[5]] = tail(result, at);
  });
}

void scale_shift(Stream stream, Source x, const float* scale, const float* shift, Target y, const Then& then) {
  const auto places = walk_with(then, x.view, by_channel(y.view), y.view);
  const auto tail = tail_of(then);
  const float* from = x.data;
  float* to = y.data;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[6];
    places.find(i, at);
    const float by = scale == nullptr ? 1 : scale[at[4]], plus = shift == nullptr ? 0 : shift[at[4]];
    to[at[5]] = tail(by * from[at[3]] + plus, at);
  });
}

void normalise(Stream stream, Source x, const FixedStatistics& statistics, Target y, const Then& then) {
  const auto places = walk_with(then, x.view, by_channel(y.view), y.view);
  const auto tail = tail_of(then);
  const float* from = x.data;
  float* to = y.data;
  const auto epsilon = static_cast<float>(statistics.epsilon);
  const FixedStatistics fixed = statistics;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[6];
    places.find(i, at);
    const Index c = at[4];
    const float scale = fixed.scale == nullptr ? 1 : fixed.scale[c],
                shift = fixed.shift == nullptr ? 0 : fixed.shift[c];
    const float deviation = 1 / sqrtf(fixed.variance[c] + epsilon);
    to[at[5]] = tail((from[at[3]] - fixed.mean[c]) * (deviation * scale) + shift, at);
  });
}

void apply_backward(Stream stream, Source gradient, Source data, Function function, bool of_result, Target to) {
  const auto places = walk<3>({gradient.view, data.view, to.view});
  const float *of_output = gradient.data, *by = data.data;
  float* into = to.data;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[3];
    places.find(i, at);
    const float x = by[at[1]];
    into[at[2]] = of_output[at[0]] * (of_result ? derivative_by_result(function, x) : derivative_at(function, x));
  });
}

}  // namespace kit_cuda
