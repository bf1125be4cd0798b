// SPDX-License-Identifier: Apache-2.0
#include "kit/one_pixel.hpp"

#include <algorithm>
#include <cstring>

#include "kit/blocks.hpp"

namespace kit {
namespace {

Extent pixels_of(const Shape& shape) {
  Extent pixels = 1;
  for (int d = 2; d < shape.rank; ++d) pixels *= shape[d];
  return pixels;
}

// Between the first pixel of images and rows. Of each of `count` runs of pixels, blocks or whole images, `bytes` are of
// the first pixel.
struct FirstPixel {
  memory from, to;
  Extent count, pixels;
  std::size_t bytes;
  bool into_image;

  void operator()() const {
    const auto* source = static_cast<const std::byte*>(from.get_data_handle());
    auto* target = static_cast<std::byte*>(to.get_data_handle());
    const std::size_t all = bytes * static_cast<std::size_t>(pixels);
#pragma omp parallel for schedule(static)
    for (Extent i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (into_image) {
        std::memcpy(target + at * all, source + at * bytes, bytes);
        std::memset(target + at * all + bytes, 0, all - bytes);
      } else {
        std::memcpy(target + at * bytes, source + at * all, bytes);
      }
    }
  }
};

void add_first_pixel(Internals& in, const Tensor& from, const Tensor& to, const Tensor& image, bool into_image) {
  const Extent run = image.layout == own_layout ? kernels::kBlock : image.shape[1];
  const auto bytes = static_cast<std::size_t>(run) * memory::data_type_size(data_type_of(image.type));
  in.add_own(FirstPixel{in.handle(from, desc_of(from)), in.handle(to, desc_of(to)),
                        image.shape[0] * image.shape[1] / run, pixels_of(image.shape), bytes, into_image},
             true, "kit:first_pixel");
}

}  // namespace

bool gives_one_pixel(const Tensor& image, const Shape& weight, const Tensor& result, const Shape& before,
                     Extent groups) {
  const bool point = pixels_of(weight) == 1 && pixels_of(result.shape) == 1 && groups == 1 &&
                     std::all_of(before.begin(), before.end(), [](Extent extent) { return extent == 0; });
  if (!point || image.layout != result.layout) return false;
  if (image.layout == Layout::channels_last) return true;
  return image.layout == own_layout && weight[0] % kernels::kBlock == 0 && weight[1] % kernels::kBlock == 0;
}

Tensor as_rows(const Tensor& image) {
  return {image.region, image.at, {image.shape[0], image.shape[1]}, Layout::plain, image.type};
}

Tensor rows_of_pixels(Program& program, const Tensor& image) {
  if (pixels_of(image.shape) == 1) return as_rows(image);
  const Tensor rows = program.internals().temporary({image.shape[0], image.shape[1]}, Layout::plain, image.type);
  add_first_pixel(program.internals(), image, rows, image, false);
  return rows;
}

void put_rows_into(Program& program, const Tensor& rows, const Tensor& image) {
  add_first_pixel(program.internals(), rows, image, image, true);
}

}  // namespace kit
