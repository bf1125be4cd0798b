// SPDX-License-Identifier: Apache-2.0
// Pooling, and sums and means over dimensions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "generate/operations.hpp"

namespace strata::generate {
namespace {

using Numbers = std::vector<std::int64_t>;

struct Window {
  Numbers kernel, stride, dilation, before, after;
  bool exact = true;  // no window begins or ends beyond the padding that was asked for
};

Window window_of(const Emitter& e, std::size_t rank) {
  const auto &in = e.shape(e.self()), &out = e.shape(e.output());
  if (in.size() != rank + 2) throw Unsupported("pooling of an input without a batch");
  Window window;
  window.kernel = e.integers("kernel_size", rank);
  window.stride = e.has("stride") && !e.node().ints("stride").empty() ? e.integers("stride", rank) : window.kernel;
  window.dilation = e.has("dilation") ? e.integers("dilation", rank) : Numbers(rank, 1);
  window.before = e.integers("padding", rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto reach = (out[i + 2] - 1) * window.stride[i] + (window.kernel[i] - 1) * window.dilation[i] + 1;
    const auto needed = reach - in[i + 2] - window.before[i];
    window.exact = window.exact && needed <= window.before[i];
    window.after.push_back(std::max(needed, window.before[i]));
  }
  return window;
}

void pool(Emitter& e, const char* function, const Window& window) {
  e.call(function, {{"source", e.tensor(e.self())},
                    {"result", e.result()},
                    {"kernel", braces(window.kernel)},
                    {"stride", braces(window.stride)},
                    {"dilation", braces(window.dilation)},
                    {"before", braces(window.before)},
                    {"after", braces(window.after)}});
}

// Ranges of the input and the number to divide by, for each place of the output along one dimension.
std::string span(std::int64_t begin, std::int64_t end, std::int64_t count) {
  return fmt::format("{{{}, {}, {}}}", begin, end, count);
}

std::string adaptive_spans(std::int64_t in, std::int64_t out) {
  std::vector<std::string> all;
  for (std::int64_t o = 0; o < out; ++o) {
    const auto begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    all.push_back(span(begin, end, end - begin));
  }
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

std::string window_spans(const Window& window, std::size_t i, std::int64_t in, std::int64_t out, bool count_padding) {
  std::vector<std::string> all;
  for (std::int64_t o = 0; o < out; ++o) {
    const auto begin = o * window.stride[i] - window.before[i];
    const auto end = std::min(begin + window.kernel[i], in + window.before[i]);
    const auto first = std::max<std::int64_t>(begin, 0), last = std::min(end, in);
    all.push_back(span(first, last, count_padding ? end - begin : last - first));
  }
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

void uneven(Emitter& e, const std::vector<std::string>& spans, double divisor) {
  if (e.layout(e.self()) != compiler::Layout::plain || e.layout(e.output()) != compiler::Layout::plain)
    throw Unsupported("windows of unequal size in a layout that is not row-major");
  e.call("uneven_average_pool", {{"source", e.tensor(e.self())},
                                 {"result", e.result()},
                                 {"spans", fmt::format("{{{}}}", fmt::join(spans, ", "))},
                                 {"divisor", divisor == 0 ? "" : float_literal(divisor)}});
}

template <std::size_t rank>
void max_pool(Emitter& e) {
  pool(e, "max_pool", window_of(e, rank));
}

template <std::size_t rank>
void avg_pool(Emitter& e) {
  const Window window = window_of(e, rank);
  const bool count_padding = e.node().flag("count_include_pad"), divided = e.has("divisor_override");
  if (!divided && (window.exact || !count_padding))
    return pool(e, count_padding ? "average_pool_with_padding" : "average_pool", window);
  std::vector<std::string> spans;
  for (std::size_t i = 0; i < rank; ++i)
    spans.push_back(window_spans(window, i, e.shape(e.self())[i + 2], e.shape(e.output())[i + 2], count_padding));
  uneven(e, spans, divided ? e.node().number("divisor_override") : 0);
}

template <std::size_t rank>
void adaptive_avg_pool(Emitter& e) {
  const auto &in = e.shape(e.self()), &out = e.shape(e.output());
  if (in.size() != rank + 2) throw Unsupported("pooling of an input without a batch");
  Window window{{}, {}, Numbers(rank, 1), Numbers(rank, 0), Numbers(rank, 0)};
  std::vector<std::string> spans;
  for (std::size_t at = 2; at < in.size(); ++at) {
    window.exact = window.exact && out[at] > 0 && in[at] % out[at] == 0;
    window.kernel.push_back(in[at] / std::max<std::int64_t>(out[at], 1));
    spans.push_back(adaptive_spans(in[at], out[at]));
  }
  window.stride = window.kernel;
  if (window.exact) return pool(e, "average_pool", window);
  uneven(e, spans, 0);
}

// The dimensions to reduce; all of them where none is named.
Numbers reduced(const Emitter& e, std::size_t rank) {
  Numbers all;
  if (e.has("dim"))
    for (const auto dim : e.node().ints("dim")) all.push_back(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim);
  if (all.empty()) {
    all.resize(rank);
    std::iota(all.begin(), all.end(), 0);
  }
  std::sort(all.begin(), all.end());
  return all;
}

void reduce(Emitter& e, const char* function) {
  auto shape = e.shape(e.self());
  const auto over = reduced(e, shape.size());
  const bool of_image = shape.size() == 4 && over == Numbers{2, 3};
  if (of_image && std::string_view(function) == "mean")
    return e.call("mean_of_places", {{"source", e.tensor(e.self())}, {"result", e.result()}});
  if (e.layout(e.self()) != compiler::Layout::plain) throw Unsupported("a reduction in a layout that is not row-major");
  for (const auto dim : over) shape.at(static_cast<std::size_t>(dim)) = 1;
  e.call(function, {{"source", e.tensor(e.self())}, {"result", fmt::format("{}.as({})", e.result(), braces(shape))}});
}

void sum(Emitter& e) {
  reduce(e, "sum");
}
void mean(Emitter& e) {
  reduce(e, "mean");
}
void largest(Emitter& e) {
  reduce(e, "largest");
}

}  // namespace

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
  table["mean"] = mean;
  table["sum"] = sum;
  table["amax"] = largest;
}

}  // namespace strata::generate
