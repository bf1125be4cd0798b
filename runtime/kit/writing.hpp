// SPDX-License-Identifier: Apache-2.0
// Elements of any type written to, or added at, places that are computed: the reverse of indexing.hpp's lookups. One
// after the other, so that of two for one place the last stays, and sums are always the same. No library is needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kit/indexing.hpp"

namespace kit::indexing {

template <class Element>
void write(const Element* from, Extent count, Element* to, bool adds) {
  if (!adds) return void(std::copy_n(from, count, to));
  for (Extent i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<Element>)
      to[i] += from[i];
    else
      to[i] = static_cast<Element>(elements::wrapped(elements::bits(to[i]) + elements::bits(from[i])));
  }
}

// write() of elements of a type that is known while it runs; `at` and `place` count elements.
inline void write(Type type, const void* from, Extent at, Extent count, void* to, Extent place, bool adds) {
  const auto as = [&](auto* null) {
    using Element = std::remove_pointer_t<decltype(null)>;
    write(static_cast<const Element*>(from) + at, count, static_cast<Element*>(to) + place, adds);
  };
  switch (type) {
    case Type::float32:
      return as(static_cast<float*>(nullptr));
    case Type::int64:
      return as(static_cast<std::int64_t*>(nullptr));
    case Type::int32:
      return as(static_cast<std::int32_t*>(nullptr));
    case Type::uint8:
      return as(static_cast<std::uint8_t*>(nullptr));
    case Type::boolean:  // true and true is true
      if (!adds) return as(static_cast<std::uint8_t*>(nullptr));
      for (Extent i = 0; i < count; ++i)
        if (static_cast<const std::uint8_t*>(from)[at + i] != 0) static_cast<std::uint8_t*>(to)[place + i] = 1;
      return;
    default:
      throw std::logic_error("elements in bfloat16");
  }
}

// A scatter along an axis: result[..., numbers[..., i, ...], ...] becomes, or is increased by, source[..., i, ...].
struct Scattering {
  std::vector<Extent> shape, of_numbers, of_source;  // the source may be larger than the numbers
  std::size_t axis = 0;
  Type type = Type::float32, type_of_numbers = Type::int64;
  bool adds = false;

  // Throws std::runtime_error where a number is out of range.
  void run(const void* self, const void* numbers, const void* source, void* result) const {
    const auto to = row_major_strides_of(shape), from = row_major_strides_of(of_source);
    std::memcpy(result, self, static_cast<std::size_t>(Picking::product(shape) * bytes_of(type)));
    const Extent all = Picking::product(of_numbers);
    for (Extent i = 0; i < all; ++i) {
      Extent rest = i, at = 0, place = 0;
      for (std::size_t d = of_numbers.size(); d-- > 0; rest /= of_numbers[d]) {
        at += rest % of_numbers[d] * from[d];
        if (d != axis) place += rest % of_numbers[d] * to[d];
      }
      place += number_at(numbers, type_of_numbers, i, shape[axis]) * to[axis];
      write(type, source, at, 1, result, place, adds);
    }
  }
};

// The reverse of a pick: values [result of the pick] go to where the pick would take them from, in a tensor that is
// `self` elsewhere. `elements`: of the tensor. Throws std::runtime_error where a number is out of range.
inline void put(const Picking& picking, const void* self, Extent elements, const void* values, Type type, bool adds,
                void* result) {
  std::memcpy(result, self, static_cast<std::size_t>(elements * bytes_of(type)));
  picking.for_each_stretch(
      [&](Extent at, Extent place, Extent count) { write(type, values, place, count, result, at, adds); });
}

}  // namespace kit::indexing
