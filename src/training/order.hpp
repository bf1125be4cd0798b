// SPDX-License-Identifier: Apache-2.0
// Which samples make which batch of an epoch, and what is done to each: drawn from seeds alone, the same for every
// level, on every machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/result.hpp"

namespace strata::training {

struct Augment {
  bool flip = false;  // left to right, every second image by chance
  int shift = 0;      // moved by up to so many pixels in each direction
};

struct Order {
  std::int64_t steps = 0, batch = 0;
  std::vector<std::int64_t> samples;  // [steps, batch]: a permutation, without what fills no batch
  std::vector<std::uint8_t> flip;     // [steps, batch], or empty
  std::vector<std::int8_t> shift;     // [steps, batch, 2], or empty
};

// Of epoch `epoch` of repeat `repeat`, both from 0.
Order draw_order(std::int64_t images, std::int64_t batch, const Augment& augment, std::uint64_t seed, int repeat,
                 int epoch);

// As workers read it (docs/protocol.md, steps).
Result<void> write_order(const std::filesystem::path& path, const Order& order);

}  // namespace strata::training
