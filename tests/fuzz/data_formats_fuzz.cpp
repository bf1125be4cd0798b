// SPDX-License-Identifier: Apache-2.0
// Files of data sets: the first byte says of which format the others are. Whatever they hold is refused with words that
// can be shown, or read without leaving it.
#include <cstdlib>
#include <string>
#include <vector>

#include "data/file_bytes.hpp"
#include "data/formats.hpp"
#include "data/image.hpp"
#include "data/resize.hpp"

namespace {

using namespace strata;
using Bytes = std::span<const std::uint8_t>;

template <class T>
void must_be_words(const Result<T>& result) {
  if (result) return;
  if (result.error().what.empty() || result.error().what.size() > 1000) std::abort();
}

void idx(Bytes bytes) {
  for (const std::size_t dimensions : {1, 3}) {
    const auto got = data::parse_idx(bytes, dimensions, "fuzz");
    must_be_words(got);
    if (!got) continue;
    std::size_t count = 1;
    for (const auto size : got->sizes) count *= size;
    if (got->sizes.size() != dimensions || count != got->values.size()) std::abort();
    if (got->values.data() + count != bytes.data() + bytes.size()) std::abort();
  }
}

void cifar(Bytes bytes) {
  for (const std::size_t label_bytes : {1, 2}) {
    const auto count = data::cifar_records(bytes.size(), label_bytes, "fuzz");
    must_be_words(count);
    std::vector<std::uint8_t> image(data::cifar_image_bytes);
    for (std::size_t i = 0; count && i < *count; ++i) {
      const auto label = data::read_cifar_record(bytes, label_bytes, i, 10, "fuzz", image);
      must_be_words(label);
      if (label && (*label < 0 || *label > 9)) std::abort();
    }
  }
}

// One image's worth of pixels is made of few bytes, so that the fuzzer gets past the size.
void stl(Bytes bytes) {
  if (bytes.empty()) return;
  std::vector<std::uint8_t> images(data::stl_image_bytes * (bytes[0] % 3));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = bytes[i % bytes.size()];
  const auto labels = bytes.subspan(1);
  const auto count = data::stl_records(images.size(), labels.size(), "images", "labels");
  must_be_words(count);
  std::vector<std::uint8_t> image(data::stl_image_bytes);
  for (std::size_t i = 0; count && i < *count; ++i) {
    const auto label = data::read_stl_record(images, labels, i, 10, "labels", image);
    must_be_words(label);
    if (label && (*label < 0 || *label > 9)) std::abort();
  }
}

void voc(Bytes bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto objects = data::parse_voc_objects(text, "fuzz");
  must_be_words(objects);
  if (objects)
    for (const auto& name : *objects)
      if (name.empty()) std::abort();
  for (const bool values : {false, true}) {
    const auto lines = data::parse_voc_list(text, values, "fuzz");
    must_be_words(lines);
    if (!lines) continue;
    for (const auto& line : *lines)
      if (line.image.find('/') != std::string::npos || line.image[0] == '.' || line.value < -1 || line.value > 1)
        std::abort();
  }
}

void photo(Bytes bytes, bool png) {
  const auto image = png ? data::decode_png(bytes, "fuzz") : data::decode_jpeg(bytes, "fuzz", bytes.size() % 40);
  must_be_words(image);
  if (!image || image->width * image->height > 1'000'000) return;
  std::vector<std::uint8_t> planes(3 * 7 * 7);
  data::resize_to_square(*image, 7, planes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const Bytes rest(bytes + 1, size - 1);
  switch (bytes[0] % 7) {
    case 0:
      idx(rest);
      break;
    case 1:
      cifar(rest);
      break;
    case 2:
      stl(rest);
      break;
    case 3:
      voc(rest);
      break;
    case 4:
      must_be_words(data::gunzip(rest, "fuzz", 1 << 20));
      break;
    case 5:
      photo(rest, true);
      break;
    case 6:
      photo(rest, false);
      break;
  }
  return 0;
}
