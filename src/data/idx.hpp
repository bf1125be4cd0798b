// SPDX-License-Identifier: Apache-2.0
// IDX, the format of MNIST: a magic number, sizes in big-endian, unsigned bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::data {

struct Idx {
  std::vector<std::size_t> sizes;
  std::span<const std::uint8_t> values;  // of `bytes`; the product of the sizes
};

// Unsigned bytes of so many dimensions; anything else is an error that says what. `where` names the file.
Result<Idx> parse_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions, const std::string& where);

}  // namespace strata::data
