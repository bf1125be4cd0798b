// SPDX-License-Identifier: Apache-2.0
// How the elements of a tensor lie in memory, whatever the layout: a stride for each dimension. And the walk over the
// elements of several tensors at once, along which dimensions that lie one behind the other in all of them are one.
#pragma once

#include <array>
#include <stdexcept>

#include "kit_cuda/kernels/loop.hpp"

namespace kit_cuda {

constexpr int most_dims = 6;

// `strides` in elements; 0 where the tensor is broadcast.
struct View {
  int rank = 0;
  Index extents[most_dims] = {}, strides[most_dims] = {};

  Index count() const {
    Index product = 1;
    for (int d = 0; d < rank; ++d) product *= extents[d];
    return product;
  }
};

template <class T>
struct Strided {
  T* data = nullptr;
  View view = {};
  explicit operator bool() const { return data != nullptr; }
};
using Source = Strided<const float>;
using Target = Strided<float>;

// Elements in the order of the dimensions, or N D H W C of dimensions N C D H W.
inline View row_major(const Index* extents, int rank) {
  if (rank > most_dims) throw std::length_error("a tensor of more than 6 dimensions");
  View view{rank};
  Index step = 1;
  for (int d = rank; d-- > 0;) {
    view.extents[d] = extents[d];
    view.strides[d] = step;
    step *= std::max<Index>(extents[d], 1);
  }
  return view;
}
inline View channels_last(const Index* extents, int rank) {
  View view = row_major(extents, rank);
  if (rank < 3) return view;
  for (int d = 2; d < rank; ++d) view.strides[d] *= extents[1];
  view.strides[1] = 1;
  return view;
}

// With ones in front up to the rank of `to`, and every extent of 1 read again and again up to that of `to`.
inline View broadcast(const View& from, const View& to) {
  const int missing = to.rank - from.rank;
  View view{to.rank};
  for (int d = 0; d < to.rank; ++d) {
    const int own = d - missing;
    const Index extent = own < 0 ? 1 : from.extents[own];
    if (extent != to.extents[d] && extent != 1) throw std::invalid_argument("a tensor that does not broadcast");
    view.extents[d] = to.extents[d];
    view.strides[d] = extent == 1 ? 0 : from.strides[own];
  }
  if (missing < 0) throw std::invalid_argument("a tensor that does not broadcast");
  return view;
}

inline View without(const View& from, int dim) {
  View view{from.rank - 1};
  for (int d = 0, to = 0; d < from.rank; ++d) {
    if (d == dim) continue;
    view.extents[to] = from.extents[d];
    view.strides[to++] = from.strides[d];
  }
  return view;
}

// Places in N tensors: `at[n]` is that in the n-th, counted in elements.
template <int N>
struct Walk {
  int rank = 0;
  Index count = 0;
  Index extents[most_dims] = {}, strides[N][most_dims] = {};

  KIT_DEVICE void find(Index i, Index (&at)[N]) const {
    for (int n = 0; n < N; ++n) at[n] = 0;
    for (int d = rank - 1; d >= 0; --d) {
      const Index rest = d == 0 ? 0 : i / extents[d], place = i - rest * extents[d];
      for (int n = 0; n < N; ++n) at[n] += place * strides[n][d];
      i = rest;
    }
  }
  // Whether neighbours in the walk are neighbours in tensor n.
  bool dense(int n) const { return rank == 0 || strides[n][rank - 1] == 1; }
};

namespace internal {

template <int N>
bool joins(const Walk<N>& walk, const std::array<View, N>& views, int dim) {
  const int outer = walk.rank - 1;
  for (std::size_t n = 0; n < N; ++n)
    if (walk.strides[n][outer] != views[n].strides[dim] * views[n].extents[dim]) return false;
  return true;
}

}  // namespace internal

// Over the elements of the last tensor, to which the others are broadcast, in the order in which these lie.
template <int N>
Walk<N> walk(std::array<View, N> views) {
  const View leader = views[N - 1];
  for (auto& view : views) view = broadcast(view, leader);
  int order[most_dims] = {};
  for (int d = 0; d < leader.rank; ++d) order[d] = d;
  std::stable_sort(order, order + leader.rank, [&](int a, int b) { return leader.strides[a] > leader.strides[b]; });
  Walk<N> walk;
  walk.count = leader.count();
  for (int i = 0; i < leader.rank; ++i) {
    const int d = order[i];
    if (leader.extents[d] == 1) continue;
    const bool joined = walk.rank > 0 && internal::joins<N>(walk, views, d);
    const int to = joined ? walk.rank - 1 : walk.rank++;
    walk.extents[to] = (joined ? walk.extents[to] : 1) * leader.extents[d];
    for (std::size_t n = 0; n < N; ++n) walk.strides[n][to] = views[n].strides[d];
  }
  return walk;
}

// A tensor that may be left out: then its view is of the elements of another, at no place.
template <class T>
View view_or(const Strided<T>& tensor, const View& like) {
  if (tensor) return tensor.view;
  View view = like;
  for (auto& stride : view.strides) stride = 0;
  return view;
}

}  // namespace kit_cuda
