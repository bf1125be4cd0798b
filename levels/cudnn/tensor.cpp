// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <algorithm>
#include <numeric>

#include "kit_cuda/kernels/move.hpp"

namespace strata::cudnn {
namespace {

// Dimensions of more than one element, the outermost first.
std::vector<int> order_of(const View& view) {
  std::vector<int> order;
  for (int d = 0; d < view.rank; ++d)
    if (view.extents[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return view.strides[a] > view.strides[b]; });
  return order;
}

const Dims& checked(const Dims& dims) {
  if (dims.size() > kit_cuda::most_dims) throw Unsupported("a tensor of more than 6 dimensions");
  return dims;
}

template <class T>
kit_cuda::Strided<T> strided(const Tensor& tensor) {
  return {reinterpret_cast<T*>(tensor.begin()), tensor.view};
}

template <class From>
void copy_from(kit_cuda::Stream stream, const Tensor& from, const Tensor& to) {
  if (to.type == Type::float32)
    kit_cuda::convert(stream, strided<const From>(from), strided<float>(to));
  else
    kit_cuda::convert(stream, strided<const From>(from), strided<kit_cuda::Bfloat16>(to));
}

}  // namespace

void copy(kit_cuda::Stream stream, const Tensor& from, const Tensor& to) {
  if (from.type == Type::float32)
    copy_from<float>(stream, from, to);
  else
    copy_from<kit_cuda::Bfloat16>(stream, from, to);
}

View row_major(const Dims& dims) {
  if (dims.empty()) return row_major({1});
  return kit_cuda::row_major(checked(dims).data(), static_cast<int>(dims.size()));
}

View channels_last(const Dims& dims) {
  return kit_cuda::channels_last(checked(dims).data(), static_cast<int>(dims.size()));
}

bool same_layout(const View& view, const View& other) {
  if (view.rank != other.rank) return false;
  for (int d = 0; d < view.rank; ++d) {
    if (view.extents[d] != other.extents[d]) return false;
    if (view.extents[d] != 1 && view.strides[d] != other.strides[d]) return false;
  }
  return true;
}

bool is_row_major(const View& view) {
  return same_layout(view, kit_cuda::row_major(view.extents, view.rank));
}

bool is_channels_last(const View& view) {
  return view.rank > 3 && !is_row_major(view) && same_layout(view, kit_cuda::channels_last(view.extents, view.rank));
}

bool is_dense(const View& view) {
  Index step = 1;
  const auto order = order_of(view);
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (view.strides[*d] != step) return false;
    step *= view.extents[*d];
  }
  return true;
}

std::string layout_name(const View& view) {
  std::vector<int> order(static_cast<std::size_t>(view.rank));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return view.strides[a] > view.strides[b]; });
  std::string name;
  for (const int d : order) name += static_cast<char>('a' + d);
  return name;
}

std::optional<View> reshaped(const View& from, const Dims& target) {
  View view = row_major(target);
  if (is_row_major(from) || from.count() == 0) return view;
  // runs of dimensions that lie one behind the other may be cut elsewhere
  int to = view.rank - 1;
  Index run = 1, cut = 1;
  int inner = from.rank - 1;
  for (int d = from.rank - 1; d >= 0; --d) {
    run *= from.extents[d];
    const bool ends = d == 0 || (from.extents[d - 1] != 1 && from.strides[d - 1] != run * from.strides[inner]);
    if (!ends) continue;
    for (; to >= 0 && (cut < run || view.extents[to] == 1); --to) {
      view.strides[to] = cut * from.strides[inner];
      cut *= view.extents[to];
    }
    if (cut != run) return std::nullopt;
    run = cut = 1;
    inner = d - 1;
  }
  return to < 0 ? std::optional(view) : std::nullopt;
}

Tensor permuted(const Tensor& tensor, const std::vector<std::size_t>& order) {
  Tensor view = tensor;
  for (std::size_t i = 0; i < order.size(); ++i) {
    view.view.extents[i] = tensor.view.extents[order[i]];
    view.view.strides[i] = tensor.view.strides[order[i]];
  }
  return view;
}

Tensor part_of(const Tensor& tensor, std::size_t dim, Index begin, Index length, Index step) {
  Tensor view = tensor;
  view.offset += begin * tensor.view.strides[dim];
  view.view.extents[dim] = length;
  view.view.strides[dim] *= step;
  return view;
}

Tensor without(const Tensor& tensor, std::size_t dim) {
  Tensor view = tensor;
  if (view.view.rank > 1) view.view = kit_cuda::without(tensor.view, static_cast<int>(dim));
  return view;
}

Tensor expanded(const Tensor& tensor, const Dims& dims) {
  Tensor view = tensor;
  view.view = kit_cuda::broadcast(tensor.view, row_major(dims));
  return view;
}

}  // namespace strata::cudnn
