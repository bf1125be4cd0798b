// SPDX-License-Identifier: Apache-2.0
// The binary files of CIFAR-10 and CIFAR-100: records of one or two label bytes and three planes of 32x32.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/result.hpp"

namespace strata::data {

constexpr std::size_t cifar_image_bytes = 3 * 32 * 32;

// How many records a file of so many bytes holds; error: not a whole number of them, or none.
Result<std::size_t> cifar_records(std::size_t bytes, std::size_t label_bytes, const std::string& where);
// Copies image `i`; returns its label, the last of the label bytes (CIFAR-100: the fine one). Error: out of range.
Result<std::int64_t> read_cifar_record(std::span<const std::uint8_t> bytes, std::size_t label_bytes, std::size_t i,
                                       std::size_t classes, const std::string& where, std::span<std::uint8_t> image);

}  // namespace strata::data
