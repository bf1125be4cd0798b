// SPDX-License-Identifier: Apache-2.0
// The binary files of STL-10: images of three planes of 96x96, each plane column by column; labels 1 to 10 in a file
// of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/result.hpp"

namespace strata::data {

constexpr std::size_t stl_side = 96;
constexpr std::size_t stl_image_bytes = 3 * stl_side * stl_side;

// How many images two files hold; error: not whole images, none, or another number of labels.
Result<std::size_t> stl_records(std::size_t image_file_bytes, std::size_t label_file_bytes,
                                const std::string& image_file, const std::string& label_file);
// Image `i` row by row; returns its label from 0 up.
Result<std::int64_t> read_stl_record(std::span<const std::uint8_t> images, std::span<const std::uint8_t> labels,
                                     std::size_t i, std::size_t classes, const std::string& label_file,
                                     std::span<std::uint8_t> image);

}  // namespace strata::data
