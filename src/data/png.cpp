// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <png.h>

#include <cstring>

#include "data/image.hpp"

namespace strata::data {

bool is_png(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 8 && png_sig_cmp(bytes.data(), 0, 8) == 0;
}

Result<Image> decode_png(std::span<const std::uint8_t> bytes, const std::string& where) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const auto failed = [&] {
    auto error = fail(fmt::format("{}: no readable PNG: {}", where, png.message));
    png_image_free(&png);
    return error;
  };
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) return failed();
  if (std::size_t{png.width} * png.height > most_pixels) {
    std::strcpy(png.message, "more than 100 million pixels");
    return failed();
  }
  const auto alone = one_large_image(std::size_t{png.width} * png.height);
  png.format = PNG_FORMAT_RGB;
  Image image{.width = png.width, .height = png.height, .rgb = {}};
  image.rgb.resize(PNG_IMAGE_SIZE(png));
  const png_color black{0, 0, 0};
  if (!png_image_finish_read(&png, &black, image.rgb.data(), 0, nullptr) || PNG_IMAGE_FAILED(png)) return failed();
  return image;
}

std::string encode_png(std::span<const std::uint8_t> pixels, std::uint32_t width, std::uint32_t height, int channels) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = width;
  png.height = height;
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string out(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
  png_alloc_size_t size = out.size();
  if (pixels.size() != PNG_IMAGE_SIZE(png) ||
      !png_image_write_to_memory(&png, out.data(), &size, 0, pixels.data(), 0, nullptr))
    return {};
  out.resize(size);
  return out;
}

}  // namespace strata::data
