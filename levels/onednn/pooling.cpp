// SPDX-License-Identifier: Apache-2.0
// Pooling. Windows that oneDNN's call cannot describe (adaptive ones of unequal sizes, a last window that PyTorch
// counts in part) are one matrix product with a matrix of averages.
#include "pooling.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "operations.hpp"

namespace strata::onednn {
namespace {

using dnnl::algorithm;
using dnnl::pooling_forward;

constexpr std::int64_t largest_matrix = 16 << 20;  // elements

void pool(Builder& b, algorithm how, const Tensor& x, const Window& window) {
  if (x.dims().size() != window.kernel.size() + 2) throw Unsupported("pooling of an input without a batch");
  const memory::desc any(b.shape(), memory::data_type::f32, memory::format_tag::any);
  const pooling_forward::primitive_desc pd(b.engine(), dnnl::prop_kind::forward_inference, how, x.desc, any,
                                           window.stride, window.kernel, window.dilation, window.before, window.after,
                                           Builder::attr());
  b.call<pooling_forward>(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, b.result_of(pd)}});
}

// Range of the input, and the number to divide by, for each place of the output along one dimension.
struct Span {
  std::int64_t begin, end, count;
};
using Spans = std::vector<Span>;

Spans adaptive_spans(std::int64_t in, std::int64_t out) {
  Spans spans;
  for (std::int64_t o = 0; o < out; ++o) {
    const auto begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    spans.push_back({begin, end, end - begin});
  }
  return spans;
}

Spans window_spans(const Window& window, std::size_t i, std::int64_t in, std::int64_t out, bool count_padding) {
  Spans spans;
  for (std::int64_t o = 0; o < out; ++o) {
    const auto begin = o * window.stride[i] - window.before[i];
    const auto end = std::min(begin + window.kernel[i], in + window.before[i]);
    const Span inside{std::max<std::int64_t>(begin, 0), std::min(end, in), 0};
    spans.push_back({inside.begin, inside.end, count_padding ? end - begin : inside.end - inside.begin});
  }
  return spans;
}

// Element (i, o) is the share of input i in output o, a mean over the window of o.
void fill_matrix(Averaging& work, const Dims& in, const Dims& out, const std::vector<Spans>& spans, double divisor) {
  const auto rank = spans.size();
  const auto inner = [&](const Dims& dims) {
    return product(Dims(dims.end() - static_cast<std::ptrdiff_t>(rank), dims.end()));
  };
  work.inputs = inner(in);
  work.outputs = inner(out);
  if (work.inputs * work.outputs > largest_matrix)
    throw Unsupported(fmt::format("windows that need a matrix of {} x {} averages", work.inputs, work.outputs));
  work.matrix.assign(static_cast<std::size_t>(work.inputs * work.outputs), 0.0F);
  for (std::int64_t o = 0; o < work.outputs; ++o)
    for (std::int64_t i = 0; i < work.inputs; ++i) {
      double count = 1;
      bool inside = true;
      for (std::int64_t d = static_cast<std::int64_t>(rank) - 1, o_rest = o, i_rest = i; d >= 0; --d) {
        const auto at = in.size() - rank + static_cast<std::size_t>(d);
        const Span& span = spans[static_cast<std::size_t>(d)][static_cast<std::size_t>(o_rest % out[at])];
        inside = inside && i_rest % in[at] >= span.begin && i_rest % in[at] < span.end;
        count *= static_cast<double>(span.count);
        o_rest /= out[at];
        i_rest /= in[at];
      }
      if (inside)
        work.matrix[static_cast<std::size_t>(i * work.outputs + o)] =
            static_cast<float>(1 / (divisor == 0 ? count : divisor));
    }
}

void average(Builder& b, const Tensor& x, const Averaging& averaging) {
  if (averaging.matrix.empty()) return pool(b, averaging.how, x, averaging.window);
  const auto rows = product(x.dims()) / std::max<std::int64_t>(averaging.inputs, 1);
  multiply(b, b.plain(b.reshaped(x, {rows, averaging.inputs})),
           b.constant({averaging.inputs, averaging.outputs}, averaging.matrix), true);
}

template <std::size_t rank>
void max_pool(Builder& b) {
  const Tensor x = b.dense(b.tensor("self"));
  pool(b, algorithm::pooling_max, x, counted_from_0(b.pooling_window(x.dims(), b.shape(), rank)));
}

template <std::size_t rank>
void avg_pool(Builder& b) {
  const Tensor x = b.dense(b.tensor("self"));
  average(b, x, averaging_of(b, x.dims(), b.shape(), rank));
}

template <std::size_t rank>
void adaptive_avg_pool(Builder& b) {
  const Tensor x = b.dense(b.tensor("self"));
  average(b, x, adaptive_averaging(x.dims(), b.shape(), rank));
}

}  // namespace

Averaging averaging_of(Builder& b, const Dims& in, const Dims& out, std::size_t rank) {
  Averaging result;
  result.window = counted_from_0(b.pooling_window(in, out, rank));
  const bool count_padding = b.flag("count_include_pad"), divided = b.has("divisor_override");
  if (count_padding) result.how = algorithm::pooling_avg_include_padding;
  if (!divided && (result.window.exact || !count_padding)) return result;
  std::vector<Spans> spans;
  for (std::size_t i = 0; i < rank; ++i)
    spans.push_back(window_spans(result.window, i, in[in.size() - rank + i], out[in.size() - rank + i], count_padding));
  fill_matrix(result, in, out, spans, divided ? b.number("divisor_override") : 0);
  return result;
}

Averaging adaptive_averaging(const Dims& in, const Dims& out, std::size_t rank) {
  Averaging result{.window = {{}, {}, Dims(rank, 0), Dims(rank, 0), Dims(rank, 0)}};
  auto& window = result.window;
  std::vector<Spans> spans;
  for (std::size_t at = in.size() - rank; at < in.size(); ++at) {
    window.exact = window.exact && out[at] > 0 && in[at] % out[at] == 0;
    spans.push_back(adaptive_spans(in[at], out[at]));
    window.kernel.push_back(in[at] / std::max<std::int64_t>(out[at], 1));
  }
  window.stride = window.kernel;
  if (!window.exact) fill_matrix(result, in, out, spans, 0);
  return result;
}

void add_poolings(Operations& table) {
  table["max_pool1d"] = max_pool<1>;
  table["max_pool2d"] = max_pool<2>;
  table["max_pool3d"] = max_pool<3>;
  table["avg_pool1d"] = avg_pool<1>;
  table["avg_pool2d"] = avg_pool<2>;
  table["avg_pool3d"] = avg_pool<3>;
  table["adaptive_avg_pool1d"] = adaptive_avg_pool<1>;
  table["adaptive_avg_pool2d"] = adaptive_avg_pool<2>;
  table["adaptive_avg_pool3d"] = adaptive_avg_pool<3>;
}

}  // namespace strata::onednn
