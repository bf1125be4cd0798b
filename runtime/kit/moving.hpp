// SPDX-License-Identifier: Apache-2.0
// Elements of any type from some strides to others. No library is needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kit/tensor.hpp"

namespace kit {

// Strides are of elements and may be 0 where it is read; `from` and `to` are elements before the first.
struct Move {
  std::vector<Extent> dims, from_strides, to_strides;
  Extent from = 0, to = 0;
  Extent bytes = 4;  // of an element

  void run(const void* source, void* result) const {
    switch (bytes) {
      case 1:
        return move(static_cast<const std::uint8_t*>(source), static_cast<std::uint8_t*>(result));
      case 2:
        return move(static_cast<const std::uint16_t*>(source), static_cast<std::uint16_t*>(result));
      case 4:
        return move(static_cast<const std::uint32_t*>(source), static_cast<std::uint32_t*>(result));
      default:
        return move(static_cast<const std::uint64_t*>(source), static_cast<std::uint64_t*>(result));
    }
  }

 private:
  template <class Element>
  void move(const Element* source, Element* result) const {
    const Extent inner = dims.back(), step = from_strides.back(), to_step = to_strides.back();
    Extent rows = 1;
    for (std::size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < rows; ++row) {
      Extent rest = row, at = from, place = to;
      for (std::size_t d = dims.size() - 1; d-- > 0; rest /= dims[d]) {
        at += rest % dims[d] * from_strides[d];
        place += rest % dims[d] * to_strides[d];
      }
      if (to_step == 1)
        for (Extent i = 0; i < inner; ++i) result[place + i] = source[at + i * step];
      else
        for (Extent i = 0; i < inner; ++i) result[place + i * to_step] = source[at + i * step];
    }
  }
};

inline std::vector<Extent> row_major_strides_of(const std::vector<Extent>& dims) {
  std::vector<Extent> strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * (dims[d] > 0 ? dims[d] : 1);
  return strides;
}

// With which a row-major tensor of extents `own` is read as if it had the extents `to`, to which it is broadcast.
inline std::vector<Extent> broadcast_strides(const std::vector<Extent>& own, const std::vector<Extent>& to) {
  const auto strides = row_major_strides_of(own);
  std::vector<Extent> all(to.size(), 0);
  const auto ahead = to.size() - std::min(to.size(), own.size());
  for (std::size_t d = 0; d < own.size() && ahead + d < to.size(); ++d)
    if (own[d] == to[ahead + d]) all[ahead + d] = strides[d];
  return all;
}

}  // namespace kit
