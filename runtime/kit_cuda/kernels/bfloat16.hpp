// SPDX-License-Identifier: Apache-2.0
// bfloat16 as the upper half of a float32, the same for nvcc and a C++ compiler. It is read and written, and never
// calculated with.
#pragma once

#include <cstring>

#include "kit_cuda/kernels/loop.hpp"

namespace kit_cuda {

struct Bfloat16 {
  std::uint16_t bits;
};

KIT_DEVICE inline float widened(float value) {
  return value;
}
KIT_DEVICE inline float widened(Bfloat16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16U;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

KIT_DEVICE inline void round_to(float& to, float value) {
  to = value;
}
// The nearest, of two the even one.
KIT_DEVICE inline void round_to(Bfloat16& to, float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const std::uint32_t quiet_nan = 0x7fc0U;
  to.bits = static_cast<std::uint16_t>(value != value ? quiet_nan : (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

}  // namespace kit_cuda
