// SPDX-License-Identifier: Apache-2.0
// Elements of any type by numbers that are computed, and along an axis: what no library has a call for. No library is
// needed.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "kit/elements.hpp"
#include "kit/moving.hpp"

namespace kit::indexing {

// One number of a list of int64 or int32, counted from the end if negative. Throws std::runtime_error with what is out
// of range.
inline Extent number_at(const void* numbers, Type type, Extent i, Extent extent) {
  const Extent given =
      type == Type::int32 ? static_cast<const std::int32_t*>(numbers)[i] : static_cast<const std::int64_t*>(numbers)[i];
  if (given < -extent || given >= extent)
    throw std::runtime_error("index " + std::to_string(given) + " (number " + std::to_string(i) +
                             " of its list) is out of range for the " + std::to_string(extent) + " along its axis");
  return given < 0 ? given + extent : given;
}

// A row-major source [d0, d1, ...] of which axes are picked by numbers, which are broadcast to each other:
// result[before..., numbers..., after...].
struct Picking {
  struct Numbers {
    const void* data = nullptr;
    Type type = Type::int64;
    Extent extent = 0, stride = 0;    // of the axis in the source
    std::vector<Extent> own_strides;  // in the broadcast numbers' shape
  };
  std::vector<Numbers> numbers;
  std::vector<Extent> broadcast;               // the numbers' shape
  std::vector<Extent> before, before_strides;  // axes that are not picked, and their strides in the source
  std::vector<Extent> after, after_strides;
  Extent bytes = 4;  // of an element

  static Extent product(const std::vector<Extent>& extents) {
    Extent all = 1;
    for (const Extent extent : extents) all *= extent;
    return all;
  }
  static Extent offset(Extent at, const std::vector<Extent>& extents, const std::vector<Extent>& strides) {
    Extent sum = 0;
    for (std::size_t d = extents.size(); d-- > 0; at /= extents[d]) sum += at % extents[d] * strides[d];
    return sum;
  }

  // each(at, place, count): elements of the source from `at` on, those of the result from `place` on. Throws
  // std::runtime_error where a number is out of range.
  template <class Each>
  void for_each_stretch(const Each& each) const {
    const Extent outer = product(before), picks = product(broadcast), inner = product(after);
    const bool whole = inner_is_whole();
    Extent place = 0;
    for (Extent o = 0; o < outer; ++o) {
      const Extent start = offset(o, before, before_strides);
      for (Extent p = 0; p < picks; ++p) {
        Extent at = start;
        for (const auto& list : numbers)
          at += number_at(list.data, list.type, offset(p, broadcast, list.own_strides), list.extent) * list.stride;
        for (Extent i = 0; i < (whole ? 1 : inner); ++i) {
          const Extent elements = whole ? inner : 1;
          each(at + (whole ? 0 : offset(i, after, after_strides)), place, elements);
          place += elements;
        }
      }
    }
  }

  void run(const void* source, void* result) const {
    const auto* from = static_cast<const std::byte*>(source);
    auto* to = static_cast<std::byte*>(result);
    for_each_stretch([&](Extent at, Extent place, Extent count) {
      std::memcpy(to + place * bytes, from + at * bytes, static_cast<std::size_t>(count * bytes));
    });
  }

 private:
  bool inner_is_whole() const {
    Extent expected = 1;
    for (std::size_t d = after.size(); d-- > 0; expected *= after[d])
      if (after[d] != 1 && after_strides[d] != expected) return false;
    return true;
  }
};

// Picks of a source of this shape: `lists[axis]` are the numbers of an axis; one without rank and data stands for none.
// Axes of numbers that are not neighbours come first in the result, as in PyTorch.
struct List {
  bool given = false;
  Type type = Type::int64;
  std::vector<Extent> shape;
};
inline Picking picking(const std::vector<Extent>& source, const std::vector<List>& lists, Type type) {
  Picking all;
  all.bytes = bytes_of(type);
  const auto strides = row_major_strides_of(source);
  int groups = 0;
  bool inside = false;
  for (std::size_t d = 0; d < source.size(); ++d) {
    const bool picked = d < lists.size() && lists[d].given;
    if (picked) {
      groups += inside ? 0 : 1;
      const auto& shape = lists[d].shape;
      if (shape.size() > all.broadcast.size())
        all.broadcast.insert(all.broadcast.begin(), shape.size() - all.broadcast.size(), 1);
      for (std::size_t i = 0; i < shape.size(); ++i)
        if (auto& extent = all.broadcast[all.broadcast.size() - shape.size() + i]; extent == 1) extent = shape[i];
      all.numbers.push_back({nullptr, lists[d].type, source[d], strides[d], {}});
    } else {
      (groups == 0 ? all.before : all.after).push_back(source[d]);
      (groups == 0 ? all.before_strides : all.after_strides).push_back(strides[d]);
    }
    inside = picked;
  }
  if (groups > 1) {
    all.after.insert(all.after.begin(), all.before.begin(), all.before.end());
    all.after_strides.insert(all.after_strides.begin(), all.before_strides.begin(), all.before_strides.end());
    all.before.clear();
    all.before_strides.clear();
  }
  std::size_t number = 0;
  for (const auto& list : lists) {
    if (!list.given) continue;
    all.numbers[number++].own_strides = broadcast_strides(list.shape, all.broadcast);
  }
  return all;
}

// A row-major tensor as [outer, count, inner] along an axis.
struct Along {
  Extent outer = 1, count = 1, inner = 1;
};
inline Along along(const std::vector<Extent>& shape, std::size_t axis) {
  Along all;
  for (std::size_t d = 0; d < shape.size(); ++d) (d < axis ? all.outer : d == axis ? all.count : all.inner) *= shape[d];
  return all;
}

// result[..., i, ...] = source[..., numbers[..., i, ...], ...]; `shape`: of the source, `to`: of numbers and result,
// which may be smaller in each other dimension.
inline void gather(const void* source, const std::vector<Extent>& shape, Type type, std::size_t axis,
                   const void* numbers, Type of_numbers, const std::vector<Extent>& to, void* result) {
  const auto strides = row_major_strides_of(shape);
  const auto bytes = static_cast<std::size_t>(bytes_of(type));
  const Extent all = Picking::product(to);
  for (Extent i = 0; i < all; ++i) {
    Extent rest = i, at = 0;
    for (std::size_t d = to.size(); d-- > 0; rest /= to[d])
      if (d != axis) at += rest % to[d] * strides[d];
    at += number_at(numbers, of_numbers, i, shape[axis]) * strides[axis];
    std::memcpy(static_cast<std::byte*>(result) + static_cast<std::size_t>(i) * bytes,
                static_cast<const std::byte*>(source) + static_cast<std::size_t>(at) * bytes, bytes);
  }
}

template <class Number>
void add_along(const void* source, Type from, const Along& way, void* result, Type to) {
  const elements::Source all{.data = source, .type = from, .strides = {1}};
  for (Extent o = 0; o < way.outer; ++o)
    for (Extent i = 0; i < way.inner; ++i) {
      Number sum = 0;
      for (Extent c = 0; c < way.count; ++c) {
        const Extent at = (o * way.count + c) * way.inner + i;
        Number value = 0;
        elements::load(all, at, 1, &value);
        if constexpr (std::is_floating_point_v<Number>)
          sum += value;
        else
          sum = elements::wrapped(elements::bits(sum) + elements::bits(value));
        elements::store(&sum, 1, result, to, at);
      }
    }
}
// Sums of all elements up to each along an axis, of floats in float64.
inline void running_sum(const void* source, Type from, const Along& way, void* result, Type to) {
  is_floating(to) ? add_along<double>(source, from, way, result, to)
                  : add_along<std::int64_t>(source, from, way, result, to);
}

// Where along the axis the largest (smallest) element is, the first of equal ones; NaN is larger (smaller) than all.
template <class Number>
void find_along(const void* source, Type type, const Along& way, bool smallest, std::int64_t* result) {
  const elements::Source all{.data = source, .type = type, .strides = {1}};
  for (Extent o = 0; o < way.outer; ++o)
    for (Extent i = 0; i < way.inner; ++i) {
      Number best = 0;
      Extent place = 0;
      for (Extent c = 0; c < way.count; ++c) {
        Number value = 0;
        elements::load(all, (o * way.count + c) * way.inner + i, 1, &value);
        const bool better = (smallest ? value < best : value > best) || (value != value && best == best);
        if (c != 0 && !better) continue;
        best = value;
        place = c;
      }
      result[o * way.inner + i] = place;
    }
}
inline void place_of(const void* source, Type type, const Along& way, bool smallest, std::int64_t* result) {
  type == Type::float32 ? find_along<float>(source, type, way, smallest, result)
                        : find_along<std::int64_t>(source, type, way, smallest, result);
}

}  // namespace kit::indexing
