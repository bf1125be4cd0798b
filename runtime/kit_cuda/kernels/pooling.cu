// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kit_cuda/kernels/pooling.hpp"

namespace kit_cuda {
namespace {

// Always N C D H W: what is missing has one element.
View as_volume(const View& from) {
  if (from.rank < 3 || from.rank > 5) throw std::invalid_argument("pooling of what is no image");
  View view{5, {1, 1, 1, 1, 1}, {}};
  for (int d = 0; d < 2; ++d) view.extents[d] = from.extents[d], view.strides[d] = from.strides[d];
  for (int d = 2; d < from.rank; ++d) {
    const int to = d + 5 - from.rank;
    view.extents[to] = from.extents[d];
    view.strides[to] = from.strides[d];
  }
  return view;
}

Window as_volume(const Window& from, int rank) {
  Window window;
  const int missing = 5 - rank;
  for (int d = missing; d < most_spatial; ++d) {
    window.kernel[d] = from.kernel[d - missing];
    window.stride[d] = from.stride[d - missing];
    window.dilation[d] = from.dilation[d - missing];
    window.before[d] = from.before[d - missing];
  }
  return window;
}

struct Range {
  Index begin, end;
};

// Which of the window's elements along a dimension are inside of an extent.
KIT_DEVICE inline Range inside(const Window& window, int d, Index output, Index extent) {
  const Index first = output * window.stride[d] - window.before[d], step = window.dilation[d];
  const Index begin = first >= 0 ? 0 : (-first + step - 1) / step;
  const Index end = extent - first <= 0 ? 0 : (extent - first + step - 1) / step;
  return {begin, end < window.kernel[d] ? end : window.kernel[d]};
}

// Outputs whose windows may hold a place of the input.
KIT_DEVICE inline Range reached(const Window& window, int d, Index place, Index outputs) {
  const Index last = place + window.before[d], reach = (window.kernel[d] - 1) * window.dilation[d];
  const Index begin = last - reach <= 0 ? 0 : (last - reach + window.stride[d] - 1) / window.stride[d];
  const Index end = last / window.stride[d] + 1;
  return {begin, end < outputs ? end : outputs};
}

// The element of the window of `output` that lies on `place`, along a dimension; -1: none does.
KIT_DEVICE inline Index element_at(const Window& window, int d, Index output, Index place) {
  const Index behind = place + window.before[d] - output * window.stride[d];
  if (behind < 0 || behind % window.dilation[d] != 0) return -1;
  const Index element = behind / window.dilation[d];
  return element < window.kernel[d] ? element : -1;
}

KIT_DEVICE inline void split(const View& view, Index i, Index (&at)[5]) {
  for (int d = 4; d >= 0; --d) {
    at[d] = i % view.extents[d];
    i /= view.extents[d];
  }
}

KIT_DEVICE inline Index place_of(const View& view, Index n, Index c, const Index* spatial) {
  return n * view.strides[0] + c * view.strides[1] + spatial[0] * view.strides[2] + spatial[1] * view.strides[3] +
         spatial[2] * view.strides[4];
}

// With the channels last where they lie so, that neighbouring threads read neighbouring bytes.
struct Order {
  View logical;
  bool last;
  KIT_DEVICE void split(Index i, Index (&at)[5]) const {
    if (!last) return kit_cuda::split(logical, i, at);
    const Index rest = i / logical.extents[1];
    at[1] = i - rest * logical.extents[1];
    View others = logical;
    others.extents[1] = 1;
    const Index channel = at[1];
    kit_cuda::split(others, rest, at);
    at[1] = channel;
  }
};
Order order_of(const View& view) {
  return {view, view.strides[1] == 1 && view.extents[1] > 1};
}

// The element of the largest number of one window; PyTorch takes NaN for the largest.
template <class Place, class Each>
KIT_DEVICE inline void each_inside(const Window& window, const View& image, const Index* output, Each each) {
  const Range d = inside(window, 0, output[0], image.extents[2]), h = inside(window, 1, output[1], image.extents[3]),
              w = inside(window, 2, output[2], image.extents[4]);
  for (Index a = d.begin; a < d.end; ++a)
    for (Index b = h.begin; b < h.end; ++b)
      for (Index c = w.begin; c < w.end; ++c) {
        const Index element[3] = {a, b, c};
        Index place[3];
        for (int i = 0; i < 3; ++i)
          place[i] = output[i] * window.stride[i] - window.before[i] + element[i] * window.dilation[i];
        const Index number = sizeof(Place) == 1
                                 ? (a * window.kernel[1] + b) * window.kernel[2] + c
                                 : (place[0] * image.extents[3] + place[1]) * image.extents[4] + place[2];
        each(place, static_cast<Place>(number));
      }
}

}  // namespace

template <class Place>
void max_pool(Stream stream, Source x, const Window& any_window, Target y, Strided<Place> index) {
  const Window window = as_volume(any_window, x.view.rank);
  if (sizeof(Place) == 1 && window.kernel[0] * window.kernel[1] * window.kernel[2] > 255)
    throw std::invalid_argument("a window of more than 255 elements, whose places do not fit a byte");
  const View image = as_volume(x.view), result = as_volume(y.view), marks = as_volume(view_or(index, y.view));
  const Order order = order_of(result);
  const float* from = x.data;
  float* to = y.data;
  Place* where = index.data;
  for_each(stream, result.count(), [=] KIT_DEVICE(Index i) {
    Index at[5];
    order.split(i, at);
    float most = -INFINITY;
    Place best = 0;
    bool any = false;
    each_inside<Place>(window, image, at + 2, [&](const Index* place, Place number) {
      const float candidate = from[place_of(image, at[0], at[1], place)];
      if (any && !(candidate > most || candidate != candidate)) return;
      any = true;
      most = candidate;
      best = number;
    });
    to[place_of(result, at[0], at[1], at + 2)] = most;
    if (where != nullptr) where[place_of(marks, at[0], at[1], at + 2)] = best;
  });
}

template <class Place>
void max_pool_backward(Stream stream, Source gradient, Strided<const Place> index, const Window& any_window,
                       Target target) {
  const Window window = as_volume(any_window, target.view.rank);
  const View image = as_volume(target.view), result = as_volume(gradient.view), marks = as_volume(index.view);
  const Order order = order_of(image);
  const float* from = gradient.data;
  const Place* where = index.data;
  float* to = target.data;
  for_each(stream, image.count(), [=] KIT_DEVICE(Index i) {
    Index at[5];
    order.split(i, at);
    const Range d = reached(window, 0, at[2], result.extents[2]), h = reached(window, 1, at[3], result.extents[3]),
                w = reached(window, 2, at[4], result.extents[4]);
    const Index flat = (at[2] * image.extents[3] + at[3]) * image.extents[4] + at[4];
    float sum = 0;
    for (Index a = d.begin; a < d.end; ++a)
      for (Index b = h.begin; b < h.end; ++b)
        for (Index c = w.begin; c < w.end; ++c) {
          const Index output[3] = {a, b, c};
          const Index e0 = element_at(window, 0, a, at[2]), e1 = element_at(window, 1, b, at[3]),
                      e2 = element_at(window, 2, c, at[4]);
          if (e0 < 0 || e1 < 0 || e2 < 0) continue;
          const Index chosen = sizeof(Place) == 1 ? (e0 * window.kernel[1] + e1) * window.kernel[2] + e2 : flat;
          if (static_cast<Index>(where[place_of(marks, at[0], at[1], output)]) == chosen)
            sum += from[place_of(result, at[0], at[1], output)];
        }
    to[place_of(image, at[0], at[1], at + 2)] = sum;
  });
}

template void max_pool(Stream, Source, const Window&, Target, Strided<std::uint8_t>);
template void max_pool(Stream, Source, const Window&, Target, Strided<std::int64_t>);
template void max_pool_backward(Stream, Source, Strided<const std::uint8_t>, const Window&, Target);
template void max_pool_backward(Stream, Source, Strided<const std::int64_t>, const Window&, Target);

namespace {

// Averaging with what both directions need, along each spatial dimension of a volume.
struct Averages {
  Window window;
  bool adaptive, count_padding;
  double divisor;
  Index in[3], out[3];

  // The places of the input in the window of `output`, and how many it counts.
  KIT_DEVICE Range span(int d, Index output, Index& count) const {
    if (adaptive) {
      const Range range{output * in[d] / out[d], ((output + 1) * in[d] + out[d] - 1) / out[d]};
      count = range.end - range.begin;
      return range;
    }
    const Index begin = output * window.stride[d] - window.before[d];
    Index end = begin + window.kernel[d];
    if (end > in[d] + window.before[d]) end = in[d] + window.before[d];
    const Range range{begin < 0 ? 0 : begin, end < in[d] ? end : in[d]};
    count = count_padding ? end - begin : range.end - range.begin;
    return range;
  }
  KIT_DEVICE Range reached(int d, Index place) const {
    if (!adaptive) return kit_cuda::reached(window, d, place, out[d]);
    const Index end = ((place + 1) * out[d] + in[d] - 1) / in[d];
    return {place * out[d] / in[d], end < out[d] ? end : out[d]};
  }
};

Averages averages_of(const Averaging& how, int rank, const View& image, const View& result) {
  Averages all{.window = as_volume(how.window, rank),
               .adaptive = how.adaptive,
               .count_padding = how.count_padding,
               .divisor = how.divisor};
  for (int d = 0; d < 3; ++d) {
    all.in[d] = image.extents[d + 2];
    all.out[d] = result.extents[d + 2];
  }
  return all;
}

}  // namespace

void average_pool(Stream stream, Source x, const Averaging& how, Target y) {
  const View image = as_volume(x.view), result = as_volume(y.view);
  const Averages all = averages_of(how, x.view.rank, image, result);
  const Order order = order_of(result);
  const float* from = x.data;
  float* to = y.data;
  for_each(stream, result.count(), [=] KIT_DEVICE(Index i) {
    Index at[5], counts[3];
    order.split(i, at);
    const Range d = all.span(0, at[2], counts[0]), h = all.span(1, at[3], counts[1]), w = all.span(2, at[4], counts[2]);
    double sum = 0;
    for (Index a = d.begin; a < d.end; ++a)
      for (Index b = h.begin; b < h.end; ++b)
        for (Index c = w.begin; c < w.end; ++c) {
          const Index place[3] = {a, b, c};
          sum += from[place_of(image, at[0], at[1], place)];
        }
    const double count = all.divisor != 0 ? all.divisor : static_cast<double>(counts[0] * counts[1] * counts[2]);
    to[place_of(result, at[0], at[1], at + 2)] = static_cast<float>(sum / count);
  });
}

void average_pool_backward(Stream stream, Source gradient, const Averaging& how, Target target) {
  const View image = as_volume(target.view), result = as_volume(gradient.view);
  const Averages all = averages_of(how, target.view.rank, image, result);
  const Order order = order_of(image);
  const float* from = gradient.data;
  float* to = target.data;
  for_each(stream, image.count(), [=] KIT_DEVICE(Index i) {
    Index at[5], counts[3];
    order.split(i, at);
    const Range d = all.reached(0, at[2]), h = all.reached(1, at[3]), w = all.reached(2, at[4]);
    double sum = 0;
    for (Index a = d.begin; a < d.end; ++a)
      for (Index b = h.begin; b < h.end; ++b)
        for (Index c = w.begin; c < w.end; ++c) {
          const Index output[3] = {a, b, c};
          bool covered = true;
          for (int axis = 0; axis < 3; ++axis) {
            const Range range = all.span(axis, output[axis], counts[axis]);
            covered = covered && at[axis + 2] >= range.begin && at[axis + 2] < range.end;
          }
          const double count = all.divisor != 0 ? all.divisor : static_cast<double>(counts[0] * counts[1] * counts[2]);
          if (covered) sum += static_cast<double>(from[place_of(result, at[0], at[1], output)]) / count;
        }
    to[place_of(image, at[0], at[1], at + 2)] = static_cast<float>(sum);
  });
}

}  // namespace kit_cuda
