// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/kernels/spans.hpp"

namespace kit_cuda {
namespace {

// The pooled dimensions alone, always three: those that are missing have one element, in a window of its own.
struct Windows {
  const Span* spans[3];
  double divisor;
  View in, out;

  KIT_DEVICE Span span(int d, Index output) const { return spans[d] == nullptr ? Span{0, 1, 1} : spans[d][output]; }
  KIT_DEVICE double share(const Index* output) const {
    double count = 1;
    for (int d = 0; d < 3; ++d) count *= static_cast<double>(span(d, output[d]).count);
    return divisor != 0 ? divisor : count;
  }
};

View pooled_part(const View& view, int dims) {
  View part{3, {1, 1, 1}, {}};
  for (int d = 0; d < dims; ++d) {
    part.extents[3 - dims + d] = view.extents[view.rank - dims + d];
    part.strides[3 - dims + d] = view.strides[view.rank - dims + d];
  }
  return part;
}
View other_part(const View& view, int dims) {
  View part = view;
  part.rank -= dims;
  return part;
}

Windows windows_of(const SpanPool& how, const View& in, const View& out) {
  if (how.dims > 3) throw std::invalid_argument("averages over more than 3 dimensions");
  Windows windows{
      .spans = {}, .divisor = how.divisor, .in = pooled_part(in, how.dims), .out = pooled_part(out, how.dims)};
  for (int d = 0; d < how.dims; ++d) windows.spans[3 - how.dims + d] = how.spans[d];
  return windows;
}

KIT_DEVICE inline Index split(const View& view, Index i, Index (&at)[3]) {
  for (int d = 2; d >= 0; --d) {
    at[d] = i % view.extents[d];
    i /= view.extents[d];
  }
  return i;
}
KIT_DEVICE inline Index offset(const View& view, const Index* at) {
  return at[0] * view.strides[0] + at[1] * view.strides[1] + at[2] * view.strides[2];
}

}  // namespace

void span_pool(Stream stream, Source x, const SpanPool& how, Target y) {
  const Windows windows = windows_of(how, x.view, y.view);
  const auto planes = walk<2>({other_part(x.view, how.dims), other_part(y.view, how.dims)});
  const float* from = x.data;
  float* to = y.data;
  for_each(stream, y.view.count(), [=] KIT_DEVICE(Index i) {
    Index output[3], plane[2];
    planes.find(split(windows.out, i, output), plane);
    const Span a = windows.span(0, output[0]), b = windows.span(1, output[1]), c = windows.span(2, output[2]);
    double sum = 0;
    Index at[3];
    for (at[0] = a.begin; at[0] < a.end; ++at[0])
      for (at[1] = b.begin; at[1] < b.end; ++at[1])
        for (at[2] = c.begin; at[2] < c.end; ++at[2])
          sum += static_cast<double>(from[plane[0] + offset(windows.in, at)]);
    to[plane[1] + offset(windows.out, output)] = static_cast<float>(sum / windows.share(output));
  });
}

void span_pool_backward(Stream stream, Source gradient, const SpanPool& how, Target target) {
  const Windows windows = windows_of(how, target.view, gradient.view);
  const auto planes = walk<2>({other_part(gradient.view, how.dims), other_part(target.view, how.dims)});
  const float* from = gradient.data;
  float* to = target.data;
  for_each(stream, target.view.count(), [=] KIT_DEVICE(Index i) {
    Index place[3], plane[2], output[3] = {};
    planes.find(split(windows.in, i, place), plane);
    const auto covers = [&](int d) {
      const Span span = windows.span(d, output[d]);
      return place[d] >= span.begin && place[d] < span.end;
    };
    double sum = 0;
    for (output[0] = 0; output[0] < windows.out.extents[0]; ++output[0]) {
      if (!covers(0)) continue;
      for (output[1] = 0; output[1] < windows.out.extents[1]; ++output[1]) {
        if (!covers(1)) continue;
        for (output[2] = 0; output[2] < windows.out.extents[2]; ++output[2])
          if (covers(2))
            sum += static_cast<double>(from[plane[0] + offset(windows.out, output)]) / windows.share(output);
      }
    }
    to[plane[1] + offset(windows.in, place)] = static_cast<float>(sum);
  });
}

}  // namespace kit_cuda
