// SPDX-License-Identifier: Apache-2.0
// The layout that the kit's own kernels read and write.
#pragma once

#include "kit/tensor.hpp"
#include "kit/vector.hpp"

namespace kit {

inline constexpr Layout own_layout = kernels::kBlock == 16 ? Layout::blocked16 : Layout::blocked8;

}  // namespace kit
