// SPDX-License-Identifier: Apache-2.0
// Elements of any type in order along an axis, and the largest or smallest of them, with their places. NaN is larger
// than all. No library is needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kit/indexing.hpp"

namespace kit::sorting {

using indexing::Along;

// What is wanted of a line: all elements in order, the places of equal ones as they were; or the `most` largest
// (descending) or smallest, in order or as they come.
struct Order {
  bool descending = false, sorted = true;
  Extent most = -1;  // -1: all
};

template <class Number>
bool stands_before(Number x, Number y, bool descending) {
  return descending ? (x != x && y == y) || x > y : (x == x && y != y) || x < y;
}

template <class Number>
using Line = std::vector<std::pair<Number, std::int64_t>>;

// Brings what is wanted to the front. Which of equal elements are taken, and in which order, is left open by PyTorch;
// these are the calls that it makes itself on a CPU, so that the places are the same too.
template <class Number>
void bring_in_order(Line<Number>& line, const Order& order) {
  const auto before = [&](const auto& x, const auto& y) { return stands_before(x.first, y.first, order.descending); };
  if (order.most < 0) return std::stable_sort(line.begin(), line.end(), before);
  const auto most = line.begin() + order.most;
  if (order.most == 0) return;
  constexpr Extent few = 64;
  if (order.most * few <= static_cast<Extent>(line.size()))
    return std::partial_sort(line.begin(), most, line.end(), before);
  std::nth_element(line.begin(), most - 1, line.end(), before);
  if (order.sorted) std::sort(line.begin(), most - 1, before);
}

// `values` and `places`: row-major, of order.most elements along the axis; null: not wanted.
template <class Number>
void along_axis(const void* source, Type type, const Along& way, const Order& order, void* values,
                std::int64_t* places) {
  const elements::Source all{.data = source, .type = type, .strides = {1}};
  const Extent wanted = order.most < 0 ? way.count : order.most, lines = way.outer * way.inner;
#pragma omp parallel if (lines * way.count > 4096)
  {
    Line<Number> line(static_cast<std::size_t>(way.count));
#pragma omp for schedule(static)
    for (Extent l = 0; l < lines; ++l) {
      const Extent outer = l / way.inner, inner = l % way.inner;
      for (Extent c = 0; c < way.count; ++c) {
        auto& element = line[static_cast<std::size_t>(c)];
        elements::load(all, (outer * way.count + c) * way.inner + inner, 1, &element.first);
        element.second = c;
      }
      bring_in_order(line, order);
      for (Extent c = 0; c < wanted; ++c) {
        const auto& element = line[static_cast<std::size_t>(c)];
        const Extent to = (outer * wanted + c) * way.inner + inner;
        if (values != nullptr) elements::store(&element.first, 1, values, type, to);
        if (places != nullptr) places[to] = element.second;
      }
    }
  }
}

inline void run(const void* source, Type type, const Along& way, const Order& order, void* values,
                std::int64_t* places) {
  type == Type::float32 ? along_axis<float>(source, type, way, order, values, places)
                        : along_axis<std::int64_t>(source, type, way, order, values, places);
}

}  // namespace kit::sorting
