// SPDX-License-Identifier: Apache-2.0
// Calculations on each element of tensors of any type, which broadcast: on what no library calculates with, and for
// what it has no call. No library is needed. PyTorch's rules: it is calculated in the promoted type, whole numbers
// wrap around.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kit/tensor.hpp"

namespace kit {

// As ATen calls them; div_floor and div_trunc round. `where`: the second where the first is not 0, else the third.
enum class Calculation : std::uint8_t {
  to,
  neg,
  abs,
  sign,
  floor,
  ceil,
  round,
  trunc,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  erf,
  softplus,
  reciprocal,
  logical_not,
  bitwise_not,
  isnan,
  isinf,
  add,
  sub,
  mul,
  div,
  div_floor,
  div_trunc,
  remainder,
  fmod,
  pow,
  minimum,
  maximum,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  where
};

constexpr const char* calculation_names[] = {
    "to",          "neg",        "abs",         "sign",        "floor",       "ceil",        "round", "trunc",
    "exp",         "expm1",      "log",         "log1p",       "sqrt",        "rsqrt",       "sin",   "cos",
    "erf",         "softplus",   "reciprocal",  "logical_not", "bitwise_not", "isnan",       "isinf", "add",
    "sub",         "mul",        "div",         "div_floor",   "div_trunc",   "remainder",   "fmod",  "pow",
    "minimum",     "maximum",    "eq",          "ne",          "lt",          "le",          "gt",    "ge",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",  "bitwise_xor", "where"};
static_assert(std::size(calculation_names) == static_cast<std::size_t>(Calculation::where) + 1);

namespace elements {

// What is read: a tensor by strides of elements, 0 where it is broadcast, or a number.
struct Source {
  const void* data = nullptr;
  Type type = Type::float32;
  std::vector<Extent> strides;
  bool is_number = false;
  std::int64_t whole = 0;  // of a number
  double number = 0;
};

constexpr Extent kChunk = 256;  // elements that are calculated with at a time

template <class Number, class Element>
void load_as(const void* data, Extent at, Extent step, Extent count, Number* into) {
  const auto* from = static_cast<const Element*>(data) + at;
  for (Extent i = 0; i < count; ++i) into[i] = static_cast<Number>(from[i * step]);
}

// Out of its range a float is the least int64, which is what processors make of it.
inline std::int64_t whole_of(float value) {
  constexpr float range = 9.2233720368547758e18F;
  return value >= -range && value < range ? static_cast<std::int64_t>(value) : std::numeric_limits<std::int64_t>::min();
}

template <class Number>
void load(const Source& source, Extent at, Extent count, Number* into) {
  const Extent step = source.is_number ? 0 : source.strides.back();
  if (source.is_number) {
    const auto number =
        std::is_floating_point_v<Number> ? static_cast<Number>(source.number) : static_cast<Number>(source.whole);
    return void(std::fill_n(into, count, number));
  }
  switch (source.type) {
    case Type::int64:
      return load_as<Number, std::int64_t>(source.data, at, step, count, into);
    case Type::int32:
      return load_as<Number, std::int32_t>(source.data, at, step, count, into);
    case Type::uint8:
    case Type::boolean:
      return load_as<Number, std::uint8_t>(source.data, at, step, count, into);
    case Type::float32:
      if constexpr (std::is_floating_point_v<Number>) return load_as<Number, float>(source.data, at, step, count, into);
      for (Extent i = 0; i < count; ++i)
        into[i] = static_cast<Number>(whole_of(static_cast<const float*>(source.data)[at + i * step]));
      return;
    default:
      throw std::logic_error("elements in bfloat16");
  }
}

template <class Number>
void store(const Number* from, Extent count, void* to, Type type, Extent at) {
  const auto whole = [](Number value) {
    if constexpr (std::is_floating_point_v<Number>)
      return whole_of(value);
    else
      return value;
  };
  switch (type) {
    case Type::float32:
      return void(std::transform(from, from + count, static_cast<float*>(to) + at,
                                 [](Number value) { return static_cast<float>(value); }));
    case Type::int64:
      return void(std::transform(from, from + count, static_cast<std::int64_t*>(to) + at, whole));
    case Type::int32:
      return void(std::transform(from, from + count, static_cast<std::int32_t*>(to) + at,
                                 [&](Number value) { return static_cast<std::int32_t>(whole(value)); }));
    case Type::uint8:
      return void(std::transform(from, from + count, static_cast<std::uint8_t*>(to) + at,
                                 [&](Number value) { return static_cast<std::uint8_t>(whole(value)); }));
    case Type::boolean:
      return void(std::transform(from, from + count, static_cast<std::uint8_t*>(to) + at,
                                 [](Number value) { return static_cast<std::uint8_t>(value != 0 ? 1 : 0); }));
    default:
      throw std::logic_error("elements in bfloat16");
  }
}

// Sums and products of whole numbers wrap around.
inline std::int64_t wrapped(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}
inline std::uint64_t bits(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

inline std::int64_t floor_divided(std::int64_t x, std::int64_t y) {
  if (y == -1) return wrapped(-bits(x));
  const std::int64_t quotient = x / y;
  return quotient - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
}
inline std::int64_t whole_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1, square = bits(base);
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2 == 1) result *= square;
  return wrapped(result);
}

// x, in place of which the result comes, with y and z.
template <class Each, class Number>
void each(Number* x, Extent count, Each f) {
  for (Extent i = 0; i < count; ++i) x[i] = static_cast<Number>(f(i));
}

// What float and whole numbers have in common. False: it is none of these.
template <class Number>
bool calculate_any(Calculation how, Number* x, const Number* y, const Number* z, Extent n) {
  switch (how) {
    case Calculation::to:
      return true;
    case Calculation::sign:
      return each(x, n, [&](Extent i) { return x[i] > 0 ? 1 : x[i] < 0 ? -1 : 0; }), true;
    case Calculation::logical_not:
      return each(x, n, [&](Extent i) { return x[i] == 0; }), true;
    // NaN wins, as in PyTorch
    case Calculation::minimum:
      return each(x, n, [&](Extent i) { return x[i] != x[i] || x[i] < y[i] ? x[i] : y[i]; }), true;
    case Calculation::maximum:
      return each(x, n, [&](Extent i) { return x[i] != x[i] || x[i] > y[i] ? x[i] : y[i]; }), true;
    case Calculation::eq:
      return each(x, n, [&](Extent i) { return x[i] == y[i]; }), true;
    case Calculation::ne:
      return each(x, n, [&](Extent i) { return x[i] != y[i]; }), true;
    case Calculation::lt:
      return each(x, n, [&](Extent i) { return x[i] < y[i]; }), true;
    case Calculation::le:
      return each(x, n, [&](Extent i) { return x[i] <= y[i]; }), true;
    case Calculation::gt:
      return each(x, n, [&](Extent i) { return x[i] > y[i]; }), true;
    case Calculation::ge:
      return each(x, n, [&](Extent i) { return x[i] >= y[i]; }), true;
    case Calculation::logical_and:
      return each(x, n, [&](Extent i) { return x[i] != 0 && y[i] != 0; }), true;
    case Calculation::logical_or:
      return each(x, n, [&](Extent i) { return x[i] != 0 || y[i] != 0; }), true;
    case Calculation::logical_xor:
      return each(x, n, [&](Extent i) { return (x[i] != 0) != (y[i] != 0); }), true;
    case Calculation::where:
      return each(x, n, [&](Extent i) { return x[i] != 0 ? y[i] : z[i]; }), true;
    default:
      return false;
  }
}

inline void calculate(Calculation how, std::int64_t* x, const std::int64_t* y, const std::int64_t* z, Extent n) {
  if (calculate_any(how, x, y, z, n)) return;
  const bool divides = how == Calculation::div_floor || how == Calculation::div_trunc ||
                       how == Calculation::remainder || how == Calculation::fmod;
  if (divides && std::find(y, y + n, 0) != y + n) throw std::runtime_error("a whole number is divided by zero");
  switch (how) {
    case Calculation::neg:
      return each(x, n, [&](Extent i) { return wrapped(-bits(x[i])); });
    case Calculation::abs:
      return each(x, n, [&](Extent i) { return x[i] < 0 ? wrapped(-bits(x[i])) : x[i]; });
    case Calculation::bitwise_not:
      return each(x, n, [&](Extent i) { return ~x[i]; });
    case Calculation::floor:
    case Calculation::ceil:
    case Calculation::round:
    case Calculation::trunc:
      return;
    case Calculation::isnan:
    case Calculation::isinf:
      return each(x, n, [](Extent) { return 0; });
    case Calculation::add:
      return each(x, n, [&](Extent i) { return wrapped(bits(x[i]) + bits(y[i])); });
    case Calculation::sub:
      return each(x, n, [&](Extent i) { return wrapped(bits(x[i]) - bits(y[i])); });
    case Calculation::mul:
      return each(x, n, [&](Extent i) { return wrapped(bits(x[i]) * bits(y[i])); });
    case Calculation::div_floor:
      return each(x, n, [&](Extent i) { return floor_divided(x[i], y[i]); });
    case Calculation::div_trunc:
      return each(x, n, [&](Extent i) { return y[i] == -1 ? wrapped(-bits(x[i])) : x[i] / y[i]; });
    case Calculation::remainder:
      return each(x, n, [&](Extent i) { return wrapped(bits(x[i]) - bits(floor_divided(x[i], y[i])) * bits(y[i])); });
    case Calculation::fmod:
      return each(x, n, [&](Extent i) { return y[i] == -1 ? 0 : x[i] % y[i]; });
    case Calculation::pow:
      return each(x, n, [&](Extent i) { return whole_power(x[i], y[i]); });
    case Calculation::bitwise_and:
      return each(x, n, [&](Extent i) { return x[i] & y[i]; });
    case Calculation::bitwise_or:
      return each(x, n, [&](Extent i) { return x[i] | y[i]; });
    case Calculation::bitwise_xor:
      return each(x, n, [&](Extent i) { return x[i] ^ y[i]; });
    default:
      throw std::logic_error("a calculation of floats with whole numbers");
  }
}

// The quotient of what a whole multiple of y is, so that it and the remainder belong together.
inline float floor_divided(float x, float y) {
  if (y == 0) return x / y;
  const float rest = std::fmod(x, y);
  const float quotient = (x - rest) / y - (rest != 0 && (rest < 0) != (y < 0) ? 1.0F : 0.0F);
  return quotient == 0 ? std::copysign(0.0F, x / y) : std::round(quotient);
}
inline float remainder_of(float x, float y) {
  const float rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

inline void calculate(Calculation how, float* x, const float* y, const float* z, Extent n) {
  if (calculate_any(how, x, y, z, n)) return;
  switch (how) {
    case Calculation::neg:
      return each(x, n, [&](Extent i) { return -x[i]; });
    case Calculation::abs:
      return each(x, n, [&](Extent i) { return std::fabs(x[i]); });
    case Calculation::floor:
      return each(x, n, [&](Extent i) { return std::floor(x[i]); });
    case Calculation::ceil:
      return each(x, n, [&](Extent i) { return std::ceil(x[i]); });
    case Calculation::round:
      return each(x, n, [&](Extent i) { return std::nearbyint(x[i]); });
    case Calculation::trunc:
      return each(x, n, [&](Extent i) { return std::trunc(x[i]); });
    case Calculation::exp:
      return each(x, n, [&](Extent i) { return std::exp(x[i]); });
    case Calculation::expm1:
      return each(x, n, [&](Extent i) { return std::expm1(x[i]); });
    case Calculation::log:
      return each(x, n, [&](Extent i) { return std::log(x[i]); });
    case Calculation::log1p:
      return each(x, n, [&](Extent i) { return std::log1p(x[i]); });
    case Calculation::sqrt:
      return each(x, n, [&](Extent i) { return std::sqrt(x[i]); });
    case Calculation::rsqrt:
      return each(x, n, [&](Extent i) { return 1 / std::sqrt(x[i]); });
    case Calculation::sin:
      return each(x, n, [&](Extent i) { return std::sin(x[i]); });
    case Calculation::cos:
      return each(x, n, [&](Extent i) { return std::cos(x[i]); });
    case Calculation::softplus:
      return each(x, n, [&](Extent i) { return std::max(x[i], 0.0F) + std::log1p(std::exp(-std::abs(x[i]))); });
    case Calculation::erf:
      return each(x, n, [&](Extent i) { return std::erf(x[i]); });
    case Calculation::reciprocal:
      return each(x, n, [&](Extent i) { return 1 / x[i]; });
    case Calculation::isnan:
      return each(x, n, [&](Extent i) { return std::isnan(x[i]) ? 1 : 0; });
    case Calculation::isinf:
      return each(x, n, [&](Extent i) { return std::isinf(x[i]) ? 1 : 0; });
    case Calculation::add:
      return each(x, n, [&](Extent i) { return x[i] + y[i]; });
    case Calculation::sub:
      return each(x, n, [&](Extent i) { return x[i] - y[i]; });
    case Calculation::mul:
      return each(x, n, [&](Extent i) { return x[i] * y[i]; });
    case Calculation::div:
      return each(x, n, [&](Extent i) { return x[i] / y[i]; });
    case Calculation::div_floor:
      return each(x, n, [&](Extent i) { return floor_divided(x[i], y[i]); });
    case Calculation::div_trunc:
      return each(x, n, [&](Extent i) { return std::trunc(x[i] / y[i]); });
    case Calculation::remainder:
      return each(x, n, [&](Extent i) { return remainder_of(x[i], y[i]); });
    case Calculation::fmod:
      return each(x, n, [&](Extent i) { return std::fmod(x[i], y[i]); });
    case Calculation::pow:
      return each(x, n, [&](Extent i) { return std::pow(x[i], y[i]); });
    default:
      throw std::logic_error("a calculation of whole numbers with floats");
  }
}

// The elements of one stretch of the last dimension.
template <class Number>
void calculate_stretch(Calculation how, const std::vector<Source>& sources, const std::array<Extent, 3>& at,
                       Extent count, void* result, Type type, Extent place) {
  Number x[kChunk], y[kChunk], z[kChunk];
  Number* const operands[] = {x, y, z};
  for (std::size_t s = 0; s < sources.size(); ++s) load(sources[s], at[s], count, operands[s]);
  calculate(how, x, y, z, count);
  store(x, count, result, type, place);
}

// `dims`: extents of the result, which is row-major; at least one. `in_float`: it is calculated in float32, else in
// int64. Throws std::runtime_error where a whole number is divided by zero.
inline void run(Calculation how, bool in_float, const std::vector<Source>& sources, const std::vector<Extent>& dims,
                void* result, Type type) {
  const Extent inner = dims.back(), stretches = (inner + kChunk - 1) / kChunk;
  Extent rows = 1;
  for (std::size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
  std::atomic<bool> divided_by_zero = false;  // no exception may leave a thread
#pragma omp parallel for schedule(static) if (rows * inner > 4096)
  for (Extent part = 0; part < rows * stretches; ++part) {
    const Extent row = part / stretches, begin = part % stretches * kChunk, count = std::min(kChunk, inner - begin);
    std::array<Extent, 3> at{};
    for (std::size_t s = 0; s < sources.size(); ++s) {
      if (sources[s].is_number) continue;
      Extent rest = row;
      for (std::size_t d = dims.size() - 1; d-- > 0; rest /= dims[d]) at[s] += rest % dims[d] * sources[s].strides[d];
      at[s] += begin * sources[s].strides.back();
    }
    try {
      if (in_float)
        calculate_stretch<float>(how, sources, at, count, result, type, row * inner + begin);
      else
        calculate_stretch<std::int64_t>(how, sources, at, count, result, type, row * inner + begin);
    } catch (const std::runtime_error&) {
      divided_by_zero = true;
    }
  }
  if (divided_by_zero) throw std::runtime_error("a whole number is divided by zero");
}

}  // namespace elements
}  // namespace kit
