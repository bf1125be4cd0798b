// SPDX-License-Identifier: Apache-2.0
#include "image.hpp"

#include <stdexcept>

#ifdef NETWORK_WITH_JPEG

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
// jpeglib.h needs FILE to be declared before it, jerror.h the types of jpeglib.h
#include <jpeglib.h>
//
#include <jerror.h>

namespace {

// Mean and deviation of each channel that the network expects.
// clang-format off
constexpr float mean[] = {@mean@}, deviation[] = {@deviation@};
// clang-format on

// A file of some hundred bytes may claim four thousand million; raise this for larger photographs.
constexpr double max_pixels = 100e6;

struct Picture {
  int width = 0, height = 0, channels = 0;
  std::vector<unsigned char> pixels;  // row by row, channels innermost
};

struct Errors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->back, 1);
}

// Of damaged data libjpeg only warns, and puts grey in their place; the warnings left out change no pixel.
void leave_where_lost(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR) leave(info);
}

// libjpeg reports errors by a jump, so nothing with a destructor may begin after setjmp.
bool decode(std::FILE* file, int channels, Picture& picture, Errors& errors) {
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = leave_where_lost;
  jpeg_create_decompress(&info);
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_stdio_src(&info, file);
  jpeg_read_header(&info, TRUE);
  if (static_cast<double>(info.image_width) * static_cast<double>(info.image_height) > max_pixels) {
    std::snprintf(errors.message, sizeof errors.message,
                  "it has %u x %u pixels; allowed are %.0f million (max_pixels in image.cpp)", info.image_width,
                  info.image_height, max_pixels / 1e6);
    jpeg_destroy_decompress(&info);
    return false;
  }
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  picture.width = static_cast<int>(info.output_width);
  picture.height = static_cast<int>(info.output_height);
  picture.channels = channels;
  const auto row = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(channels);
  picture.pixels.resize(row * static_cast<std::size_t>(picture.height));
  while (info.output_scanline < info.output_height) {
    JSAMPROW to = picture.pixels.data() + info.output_scanline * row;
    jpeg_read_scanlines(&info, &to, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

// Weights of a triangle filter for output place `o`, as wide as the scale when it shrinks (antialiased bilinear).
struct Taps {
  int first = 0;
  std::vector<double> weights;
};

Taps taps(int o, double begin, double scale, int extent) {
  const double centre = begin + (o + 0.5) * scale, reach = std::max(scale, 1.0);
  Taps result;
  result.first = std::max(0, static_cast<int>(std::floor(centre - reach)));
  const int last = std::min(extent - 1, static_cast<int>(std::ceil(centre + reach)));
  double total = 0;
  for (int i = result.first; i <= last; ++i) {
    const double weight = std::max(0.0, 1 - std::abs((i + 0.5 - centre) / reach));
    result.weights.push_back(weight);
    total += weight;
  }
  for (double& weight : result.weights) weight /= total;
  return result;
}

double sample(const Picture& picture, const Taps& x, const Taps& y, int channel) {
  double value = 0;
  for (std::size_t j = 0; j < y.weights.size(); ++j)
    for (std::size_t i = 0; i < x.weights.size(); ++i) {
      const auto at = ((static_cast<std::size_t>(y.first) + j) * static_cast<std::size_t>(picture.width) +
                       static_cast<std::size_t>(x.first) + i) *
                          static_cast<std::size_t>(picture.channels) +
                      static_cast<std::size_t>(channel);
      value += y.weights[j] * x.weights[i] * picture.pixels[at];
    }
  return value;
}

}  // namespace

std::vector<float> read_image(const std::string& path, int channels, int height, int width) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot read " + path);
  Picture picture;
  Errors errors{};
  const bool sound = decode(file, channels, picture, errors);
  std::fclose(file);
  if (!sound) throw std::runtime_error(path + ": " + errors.message);
  const double scale =
      std::min(static_cast<double>(picture.width) / width, static_cast<double>(picture.height) / height);
  const double left = (picture.width - scale * width) / 2, top = (picture.height - scale * height) / 2;
  std::vector<float> out(static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) *
                         static_cast<std::size_t>(width));
  std::size_t at = 0;
  for (int c = 0; c < channels; ++c)
    for (int y = 0; y < height; ++y) {
      const Taps vertical = taps(y, top, scale, picture.height);
      for (int x = 0; x < width; ++x) {
        const double value = sample(picture, taps(x, left, scale, picture.width), vertical, c) / 255;
        out[at++] = static_cast<float>((value - static_cast<double>(mean[c])) / static_cast<double>(deviation[c]));
      }
    }
  return out;
}

#else

std::vector<float> read_image(const std::string& path, int, int, int) {
  throw std::runtime_error(
      path + " cannot be read: this program was built without libjpeg; install its headers and build again");
}

#endif
