// SPDX-License-Identifier: Apache-2.0
#include "kit/one_pixel.hpp"

#include <algorithm>

#include "kit/blocks.hpp"

namespace kit {
namespace {

Extent pixels_of(const Shape& shape) {
  Extent pixels = 1;
  for (int d = 2; d < shape.rank; ++d) pixels *= shape[d];
  return pixels;
}

// Between the first pixel of images in blocks and rows.
struct FirstPixel {
  memory from, to;
  Extent blocks, pixels;  // blocks of all images
  bool into_image;

  void operator()() const {
    constexpr Extent block = kernels::kBlock;
    const auto* source = static_cast<const float*>(from.get_data_handle());
    auto* target = static_cast<float*>(to.get_data_handle());
#pragma omp parallel for schedule(static)
    for (Extent b = 0; b < blocks; ++b) {
      if (into_image) {
        float* image = target + b * pixels * block;
        std::copy_n(source + b * block, block, image);
        std::fill(image + block, image + pixels * block, 0.0F);
      } else {
        std::copy_n(source + b * pixels * block, block, target + b * block);
      }
    }
  }
};

void add_first_pixel(Internals& in, const Tensor& from, const Tensor& to, const Shape& image, bool into_image) {
  in.add_own(FirstPixel{in.handle(from, desc_of(from)), in.handle(to, desc_of(to)),
                        image[0] * image[1] / kernels::kBlock, pixels_of(image), into_image},
             true, "kit:first_pixel");
}

}  // namespace

bool gives_one_pixel(const Tensor& image, const Shape& weight, const Tensor& result, const Shape& before,
                     Extent groups) {
  const bool point = pixels_of(weight) == 1 && pixels_of(result.shape) == 1 && groups == 1 &&
                     std::all_of(before.begin(), before.end(), [](Extent one) { return one == 0; });
  return point && image.layout == own_layout && result.layout == own_layout && weight[0] % kernels::kBlock == 0 &&
         weight[1] % kernels::kBlock == 0;
}

Tensor as_rows(const Tensor& image) {
  return {image.region, image.at, {image.shape[0], image.shape[1]}, Layout::plain, image.type};
}

Tensor rows_of_pixels(Program& program, const Tensor& image) {
  if (pixels_of(image.shape) == 1) return as_rows(image);
  const Tensor rows = program.internals().temporary({image.shape[0], image.shape[1]});
  add_first_pixel(program.internals(), image, rows, image.shape, false);
  return rows;
}

void put_rows_into(Program& program, const Tensor& rows, const Tensor& image) {
  add_first_pixel(program.internals(), rows, image, image.shape, true);
}

}  // namespace kit
