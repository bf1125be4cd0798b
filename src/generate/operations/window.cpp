// SPDX-License-Identifier: Apache-2.0
#include "generate/operations/window.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace strata::generate {
namespace {

using Numbers = std::vector<std::int64_t>;

// Ranges of the input and the number to divide by, for each place of the output along one dimension.
std::string span(std::int64_t begin, std::int64_t end, std::int64_t count) {
  return fmt::format("{{{}, {}, {}}}", begin, end, count);
}

std::string adaptive_span(std::int64_t in, std::int64_t out) {
  std::vector<std::string> all;
  for (std::int64_t o = 0; o < out; ++o) {
    const auto begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    all.push_back(span(begin, end, end - begin));
  }
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

std::string window_span(const Window& window, std::size_t i, std::int64_t in, std::int64_t out, bool count_padding) {
  std::vector<std::string> all;
  for (std::int64_t o = 0; o < out; ++o) {
    const auto begin = o * window.stride[i] - window.before[i];
    const auto end = std::min(begin + window.kernel[i], in + window.before[i]);
    const auto first = std::max<std::int64_t>(begin, 0), last = std::min(end, in);
    all.push_back(span(first, last, count_padding ? end - begin : last - first));
  }
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

}  // namespace

std::string adaptive_spans(const graph::Shape& in, const graph::Shape& out) {
  std::vector<std::string> all;
  for (std::size_t at = 2; at < in.size(); ++at) all.push_back(adaptive_span(in[at], out[at]));
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

std::string window_spans(const Window& window, const graph::Shape& in, const graph::Shape& out, bool count_padding) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i + 2 < in.size(); ++i)
    all.push_back(window_span(window, i, in[i + 2], out[i + 2], count_padding));
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

Fields uneven_fields(const Emitter& e, int source, const std::string& spans, double divisor) {
  if (e.layout(source) != compiler::Layout::plain || e.layout(e.output()) != compiler::Layout::plain)
    throw Unsupported("windows of unequal size in a layout that is not row-major");
  return {{"source", e.tensor(source)},
          {"result", e.result()},
          {"spans", spans},
          {"divisor", divisor == 0 ? "" : float_literal(divisor)}};
}

Window pool_window(const Emitter& e, const graph::Shape& in, const graph::Shape& out) {
  const auto rank = in.size() - 2;
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

Window adaptive_window(const graph::Shape& in, const graph::Shape& out) {
  const auto rank = in.size() - 2;
  Window window{.kernel = {}, .dilation = Numbers(rank, 1), .before = Numbers(rank, 0), .after = Numbers(rank, 0)};
  for (std::size_t at = 2; at < in.size(); ++at) {
    window.exact = window.exact && out[at] > 0 && in[at] % out[at] == 0;
    window.kernel.push_back(in[at] / std::max<std::int64_t>(out[at], 1));
  }
  window.stride = window.kernel;
  return window;
}

Fields fields_of(const Window& window) {
  return {{"kernel", braces(window.kernel)},
          {"stride", braces(window.stride)},
          {"dilation", braces(window.dilation)},
          {"before", braces(window.before)},
          {"after", braces(window.after)}};
}

Fields convolution_window(const Emitter& e, const graph::Shape& weight) {
  const auto rank = weight.size() - 2;
  const auto dilation = e.integers("dilation", rank);
  Numbers before, after;
  if (e.node().find("padding")->plain.is_string()) {
    for (std::size_t i = 0; i < rank; ++i) {
      const auto whole = e.node().text("padding") == "same" ? dilation[i] * (weight[i + 2] - 1) : 0;
      before.push_back(whole / 2);
      after.push_back(whole - whole / 2);
    }
  } else {
    before = after = e.integers("padding", rank);
  }
  const auto groups = e.node().integer("groups");
  return {{"stride", braces(e.integers("stride", rank))},
          {"dilation", braces(dilation)},
          {"before", braces(before)},
          {"after", braces(after)},
          {"groups", groups == 1 ? "" : std::to_string(groups)}};
}

}  // namespace strata::generate
