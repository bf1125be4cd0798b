// SPDX-License-Identifier: Apache-2.0
// The files of data sets, as bytes: what each format's reader (one file each) makes of them, without a file system.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace strata::data {

// IDX, the format of MNIST: a magic number, sizes in big-endian, unsigned bytes.

struct Idx {
  std::vector<std::size_t> sizes;
  std::span<const std::uint8_t> values;  // of `bytes`; the product of the sizes
};

// Unsigned bytes of so many dimensions; anything else is an error that says what. `where` names the file.
Result<Idx> parse_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions, const std::string& where);

// The binary files of CIFAR-10 and CIFAR-100: records of one or two label bytes and three planes of 32x32.

constexpr std::size_t cifar_image_bytes = 3 * 32 * 32;

// How many records a file of so many bytes holds; error: not a whole number of them, or none.
Result<std::size_t> cifar_records(std::size_t bytes, std::size_t label_bytes, const std::string& where);
// Copies image `i`; returns its label, the last of the label bytes (CIFAR-100: the fine one). Error: out of range.
Result<std::int64_t> read_cifar_record(std::span<const std::uint8_t> bytes, std::size_t label_bytes, std::size_t i,
                                       std::size_t classes, const std::string& where, std::span<std::uint8_t> image);

// The binary files of STL-10: images of three planes of 96x96, each plane column by column; labels 1 to 10 in a file
// of their own.
constexpr std::size_t stl_side = 96;
constexpr std::size_t stl_image_bytes = 3 * stl_side * stl_side;

// How many images two files hold; error: not whole images, none, or another number of labels.
Result<std::size_t> stl_records(std::size_t image_file_bytes, std::size_t label_file_bytes,
                                const std::string& image_file, const std::string& label_file);
// Image `i` row by row; returns its label from 0 up.
Result<std::int64_t> read_stl_record(std::span<const std::uint8_t> images, std::span<const std::uint8_t> labels,
                                     std::size_t i, std::size_t classes, const std::string& label_file,
                                     std::span<std::uint8_t> image);

// PASCAL VOC: annotations in XML, and lists of images.

// The classes of an annotation's objects in the file's order; parts and actions of objects are none.
Result<std::vector<std::string>> parse_voc_objects(std::string_view xml, const std::string& where);

// One line of ImageSets/Main: an image, and in a class's list whether that class is there: -1, 0 (difficult) or 1.
struct VocLine {
  std::string image;
  int value = 0;
};
// Errors name the line: a name that is no plain file name, one that stands there twice, a value that is none of these.
Result<std::vector<VocLine>> parse_voc_list(std::string_view text, bool with_values, const std::string& where);

}  // namespace strata::data
