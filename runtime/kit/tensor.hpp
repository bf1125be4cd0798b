// SPDX-License-Identifier: Apache-2.0
// Tensors of a generated program as constants: a shape, a layout and a place that is known before the program starts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>

namespace kit {

using Extent = std::int64_t;

// Up to eight extents; none is a scalar.
struct Shape {
  static constexpr int most = 8;
  Extent extents[most] = {};
  int rank = 0;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<Extent> all) {
    if (all.size() > most) throw std::length_error("a tensor of more than 8 dimensions");
    for (const Extent extent : all) extents[rank++] = extent;
  }
  constexpr Extent operator[](int i) const { return extents[i]; }
  constexpr Extent& operator[](int i) { return extents[i]; }
  constexpr const Extent* begin() const { return extents; }
  constexpr const Extent* end() const { return extents + rank; }
  constexpr Extent elements() const {
    Extent product = 1;
    for (const Extent extent : *this) product *= extent;
    return product;
  }
};

// Of four dimensions N, C, H, W: row-major; N H W C; N C/b H W b, channels padded with zeros to whole blocks.
enum class Layout : std::uint8_t { plain, channels_last, blocked8, blocked16 };

// The arena, the caller's inputs, the results, the weights, numbers of the weights' files that are no weights, memory
// that one step uses alone.
enum class Region : std::uint8_t { none, arena, input, output, weights, listed, scratch };

// What an element is. The libraries calculate with the first two alone, and add up in float32 whatever they read; of
// the others elements.hpp calculates. boolean: a byte, 0 or 1.
enum class Type : std::uint8_t { float32, bfloat16, int64, int32, uint8, boolean };
constexpr bool is_floating(Type type) {
  return type == Type::float32 || type == Type::bfloat16;
}
constexpr Extent bytes_of(Type type) {
  switch (type) {
    case Type::int64:
      return 8;
    case Type::bfloat16:
      return 2;
    case Type::uint8:
    case Type::boolean:
      return 1;
    default:
      return 4;
  }
}
// As safetensors files call it.
constexpr const char* name_of(Type type) {
  constexpr const char* names[] = {"F32", "BF16", "I64", "I32", "U8", "BOOL"};
  return names[static_cast<int>(type)];
}

// `at`: bytes from the start of the arena or the scratch; number of the input, output, weight or list.
struct Tensor {
  Region region = Region::none;
  std::int64_t at = 0;
  Shape shape;
  Layout layout = Layout::plain;
  Type type = Type::float32;

  constexpr explicit operator bool() const { return region != Region::none; }
  // The same row-major bytes as another shape.
  constexpr Tensor as(Shape other) const { return {region, at, other, layout, type}; }
  constexpr Extent bytes() const { return shape.elements() * bytes_of(type); }  // row-major
};

constexpr Tensor arena(std::int64_t at, Shape shape, Layout layout = Layout::plain) {
  return {Region::arena, at, shape, layout};
}
constexpr Tensor input(std::int64_t number, Shape shape, Layout layout = Layout::plain) {
  return {Region::input, number, shape, layout};
}
constexpr Tensor output(std::int64_t number, Shape shape, Layout layout = Layout::plain) {
  return {Region::output, number, shape, layout};
}

constexpr Tensor typed(Type type, Tensor tensor) {
  tensor.type = type;
  return tensor;
}

// A tensor of the weights file, or one that is computed from such whenever weights are loaded.
struct Weight {
  int number = -1;
  Shape shape;
  constexpr explicit operator bool() const { return number >= 0; }
  constexpr Weight as(Shape other) const { return {number, other}; }
};

}  // namespace kit
