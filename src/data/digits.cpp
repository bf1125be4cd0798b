// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "common/hash.hpp"
#include "common/text.hpp"
#include "data/dataset.hpp"
#include "data/file_bytes.hpp"
#include "data/formats.hpp"

namespace strata::data {

// src/data/digits/*.gz, written into a source by src/data/digits/embed.cmake.
extern const std::span<const std::uint8_t> digits_images_file, digits_labels_file;

namespace {

constexpr std::size_t digits_most_bytes = 1 << 20;
constexpr std::size_t digits_train_count = 1437;  // four fifths, in the file's order, which parts most of the writers

struct Digits {
  Bytes images, label_bytes;
  std::vector<std::int64_t> labels;
};

}  // namespace

Dataset digits() {
  const auto memory = std::make_shared<Digits>();
  auto images = gunzip(digits_images_file, "the digits of this program", digits_most_bytes);
  auto labels = gunzip(digits_labels_file, "the digits of this program", digits_most_bytes);
  if (!images || !labels) throw std::logic_error("the digits of this program are damaged");
  memory->images = std::move(*images);
  memory->label_bytes = std::move(*labels);
  const auto image_idx = parse_idx(memory->images, 3, "digits"),
             label_idx = parse_idx(memory->label_bytes, 1, "digits");
  if (!image_idx || !label_idx) throw std::logic_error("the digits of this program are damaged");
  memory->labels.assign(label_idx->values.begin(), label_idx->values.end());
  const auto count = memory->labels.size();
  Dataset set{.name = "digits",
              .classes = split("0,1,2,3,4,5,6,7,8,9", ','),
              .shape = {1, 8, 8},
              .highest_value = 16,
              .memory = memory};
  const auto part = [&](std::size_t first, std::size_t size) {
    const std::span<const std::int64_t> part_labels = std::span(memory->labels).subspan(first, size);
    return Split{
        .list_sha256 = sha256_hex({reinterpret_cast<const char*>(part_labels.data()), part_labels.size_bytes()}),
        .count = size,
        .images = image_idx->values.subspan(first * set.shape.bytes(), size * set.shape.bytes()),
        .labels = part_labels};
  };
  set.train = part(0, digits_train_count);
  set.test = part(digits_train_count, count - digits_train_count);
  return set;
}

}  // namespace strata::data
