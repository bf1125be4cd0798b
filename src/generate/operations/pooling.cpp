// SPDX-License-Identifier: Apache-2.0
// Pooling, and sums, means and extremes over dimensions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "generate/operations.hpp"
#include "generate/operations/window.hpp"

namespace strata::generate {
namespace {

using Numbers = std::vector<std::int64_t>;

Window window_of(const Emitter& e, std::size_t rank) {
  if (e.shape(e.self()).size() != rank + 2) throw Unsupported("pooling of an input without a batch");
  return pool_window(e, e.shape(e.self()), e.shape(e.output()));
}

void pool(Emitter& e, const char* function, const Window& window) {
  Fields fields{{"source", e.tensor(e.self())}, {"result", e.result()}};
  for (auto& field : fields_of(window)) fields.push_back(std::move(field));
  e.call(function, fields);
}

void uneven(Emitter& e, const std::string& spans, double divisor) {
  e.call("uneven_average_pool", uneven_fields(e, e.self(), spans, divisor));
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
  uneven(e, window_spans(window, e.shape(e.self()), e.shape(e.output()), count_padding),
         divided ? e.node().number("divisor_override") : 0);
}

template <std::size_t rank>
void adaptive_avg_pool(Emitter& e) {
  const auto &in = e.shape(e.self()), &out = e.shape(e.output());
  if (in.size() != rank + 2) throw Unsupported("pooling of an input without a batch");
  const Window window = adaptive_window(in, out);
  if (window.exact) return pool(e, "average_pool", window);
  uneven(e, adaptive_spans(in, out), 0);
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
void smallest(Emitter& e) {
  reduce(e, "smallest");
}
void norm(Emitter& e) {
  if (e.node().number("ord") != 2) throw Unsupported("a norm that is not Euclidean");
  reduce(e, "euclidean_norm");
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
  table["amin"] = smallest;
  table["linalg_vector_norm"] = norm;
}

}  // namespace strata::generate
