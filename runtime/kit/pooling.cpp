// SPDX-License-Identifier: Apache-2.0
// Pooling: oneDNN's, and means over windows that its call cannot describe.
#include <algorithm>
#include <stdexcept>

#include "kit/internals.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

void pool(Program& program, dnnl::algorithm kind, const Pool& how) {
  Internals& in = program.internals();
  const auto dilation = counted_from_zero(how.dilation);
  const dnnl::pooling_forward::primitive_desc pd(
      in.engine, dnnl::prop_kind::forward_inference, kind, desc_of(how.source), desc_of(how.result),
      dims_of(how.stride), dims_of(how.kernel), dilation, dims_of(how.before), dims_of(how.after), plain_attributes());
  in.add(dnnl::pooling_forward(pd), pd,
         {{DNNL_ARG_SRC, in.handle(how.source, pd.src_desc())}, {DNNL_ARG_DST, in.handle(how.result, pd.dst_desc())}});
}

// Means over boxes, of every image and channel alike; or their gradient, with `source` and `result` exchanged.
struct Uneven {
  memory source, result;
  Extent planes, in_elements, out_elements;
  std::vector<Extent> extents;
  std::vector<std::vector<Span>> spans;
  double divisor;
  bool backward;

  void operator()() const {
    auto* inner = static_cast<float*>((backward ? result : source).get_data_handle());
    auto* outer = static_cast<float*>((backward ? source : result).get_data_handle());
#pragma omp parallel for schedule(static)
    for (Extent plane = 0; plane < planes; ++plane) {
      float* const image = inner + plane * in_elements;
      if (backward) std::fill_n(image, in_elements, 0.0F);
      for (Extent o = 0; o < out_elements; ++o) average(image, o, outer[plane * out_elements + o]);
    }
  }

  // Of one window: its mean, or its share of the mean's gradient for each place in it.
  void average(float* plane, Extent o, float& value) const {
    double count = 1;
    Span window[Shape::most];
    for (std::size_t d = spans.size(); d-- > 0;) {
      const auto places = static_cast<Extent>(spans[d].size());
      window[d] = spans[d][static_cast<std::size_t>(o % places)];
      count *= static_cast<double>(window[d].count);
      o /= places;
    }
    const double by = divisor != 0 ? divisor : count;
    double total = 0;
    const float share = static_cast<float>(static_cast<double>(value) / by);
    visit(window, 0, 0, [&](Extent at) {
      if (backward)
        plane[at] += share;
      else
        total += static_cast<double>(plane[at]);
    });
    if (!backward) value = static_cast<float>(total / by);
  }

  template <class F>
  void visit(const Span* window, std::size_t d, Extent at, const F& f) const {
    for (Extent i = window[d].begin; i < window[d].end; ++i) {
      const Extent next = at * extents[d] + i;
      if (d + 1 == spans.size())
        f(next);
      else
        visit(window, d + 1, next, f);
    }
  }
};

}  // namespace

void max_pool(Program& program, const Pool& how) {
  pool(program, dnnl::algorithm::pooling_max, how);
}
void average_pool(Program& program, const Pool& how) {
  pool(program, dnnl::algorithm::pooling_avg_exclude_padding, how);
}
void average_pool_with_padding(Program& program, const Pool& how) {
  pool(program, dnnl::algorithm::pooling_avg_include_padding, how);
}

void mean_of_places(Program& program, const Reduce& how) {
  Pool whole{how.source, {}, {}, {}, {}, {}, {}};
  Shape ones = how.source.shape;
  for (int d = 2; d < ones.rank; ++d) {
    whole.kernel[whole.kernel.rank++] = ones[d];
    whole.dilation[whole.dilation.rank++] = 1;
    whole.before[whole.before.rank++] = 0;
    ones[d] = 1;
  }
  whole.stride = whole.kernel;
  whole.after = whole.before;
  // of 1x1 images with whole blocks of channels all layouts are the same bytes
  whole.result = how.result.as(ones);
  whole.result.layout = how.source.layout;
  if (desc_of(whole.result).get_size() == desc_of(how.result).get_size()) return average_pool(program, whole);
  whole.result = program.internals().temporary(ones, how.source.layout, how.source.type);
  average_pool(program, whole);
  reorder(program, {whole.result, how.result.as(ones)});
}

namespace {

void add_uneven(Program& program, const UnevenPool& how, bool backward) {
  if (how.source.layout != Layout::plain || how.result.layout != Layout::plain)
    throw std::logic_error("uneven pooling of another layout than row-major");
  Internals& in = program.internals();
  Uneven uneven{in.handle(how.source, desc_of(how.source)),
                in.handle(how.result, desc_of(how.result)),
                1,
                1,
                1,
                {},
                how.spans,
                how.divisor,
                backward};
  const Shape &inner = backward ? how.result.shape : how.source.shape,
              &outer = backward ? how.source.shape : how.result.shape;
  const int first = inner.rank - static_cast<int>(how.spans.size());
  for (int d = 0; d < first; ++d) uneven.planes *= inner[d];
  for (int d = first; d < inner.rank; ++d) {
    uneven.extents.push_back(inner[d]);
    uneven.in_elements *= inner[d];
    uneven.out_elements *= outer[d];
  }
  in.add_own(std::move(uneven), false, "kit:uneven_average");
}

}  // namespace

void uneven_average_pool(Program& program, const UnevenPool& how) {
  add_uneven(program, how, false);
}
void uneven_average_pool_backward(Program& program, const UnevenPool& how) {
  add_uneven(program, how, true);
}

}  // namespace kit
