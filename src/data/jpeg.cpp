// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <mutex>

#include "data/image.hpp"
// after it, whose types it uses
#include <jerror.h>

#include "common/interrupt.hpp"

namespace strata::data {
namespace {

constexpr double scaled_slack = 1.25;  // what is decoded may be smaller than wanted by that
constexpr int most_scans = 200;        // cameras and encoders write ten; each is a walk through the whole image
constexpr const char* jpeg_hint = "get the file again; is the disk or the download damaged?";

// libjpeg reports by calls that must not return; what it says is kept here.
struct Reports {
  jpeg_error_mgr library{};
  std::jmp_buf back{};
  std::array<char, JMSG_LENGTH_MAX> message{};
  bool lost = false;  // the data are damaged, and grey was put in their place
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* reports = reinterpret_cast<Reports*>(info->err);
  info->err->format_message(info, reports->message.data());
  std::longjmp(reports->back, 1);
}

// Warnings after which pixels are as they were meant.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
}

void keep_warning(j_common_ptr info, int level) {
  auto* reports = reinterpret_cast<Reports*>(info->err);
  if (level >= 0 || reports->lost || is_harmless(info->err->msg_code)) return;
  reports->lost = true;
  info->err->format_message(info, reports->message.data());
}

// Called now and then while libjpeg works.
void look_up(j_common_ptr info) {
  auto* reports = reinterpret_cast<Reports*>(info->err);
  const bool too_many = reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > most_scans;
  if (!too_many && !interrupted()) return;
  std::snprintf(reports->message.data(), reports->message.size(), "%s",
                too_many ? "it has more than 200 scans" : "reading it was interrupted");
  std::longjmp(reports->back, 1);
}

// Owns what libjpeg allocates; nothing between setjmp and longjmp has a destructor.
struct Decoder {
  jpeg_decompress_struct info{};
  Reports reports;
  jpeg_progress_mgr progress{};
  std::unique_lock<std::mutex> alone;  // of a large image
  const char* refused = nullptr;
  Decoder() {
    info.err = jpeg_std_error(&reports.library);
    reports.library.error_exit = leave;
    reports.library.emit_message = keep_warning;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
};

// False: reports.message or `refused` says why.
bool start(Decoder& decoder, std::span<const std::uint8_t> bytes, std::size_t scaled_to) {
  if (setjmp(decoder.reports.back) != 0) return false;
  auto& info = decoder.info;
  jpeg_create_decompress(&info);
  decoder.progress.progress_monitor = look_up;
  info.progress = &decoder.progress;
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (info.num_components != 1 && info.num_components != 3)
    decoder.refused = "it is neither grey nor of three colours";
  else if (std::size_t{info.image_width} * info.image_height > most_pixels)
    decoder.refused = "it has more than 100 million pixels";
  if (decoder.refused) return false;
  decoder.alone = one_large_image(std::size_t{info.image_width} * info.image_height);
  info.out_color_space = JCS_RGB;
  info.scale_num = info.scale_denom = 8;
  // The fractions that libjpeg-turbo has vector code for; others take longer than the whole.
  for (unsigned eighths = 1; scaled_to > 0 && eighths <= 8; eighths *= 2) {
    info.scale_num = eighths;
    jpeg_calc_output_dimensions(&info);
    if (std::min(info.output_width, info.output_height) * scaled_slack >= static_cast<double>(scaled_to)) break;
  }
  jpeg_start_decompress(&info);
  return true;
}

bool read_rows(Decoder& decoder, std::uint8_t* rgb) {
  if (setjmp(decoder.reports.back) != 0) return false;
  auto& info = decoder.info;
  const std::size_t stride = std::size_t{info.output_width} * 3;
  while (info.output_scanline < info.output_height) {
    std::array<JSAMPROW, 16> rows{};
    const auto left = info.output_height - info.output_scanline;
    const auto count = left < rows.size() ? left : static_cast<JDIMENSION>(rows.size());
    for (JDIMENSION i = 0; i < count; ++i) rows[i] = rgb + (info.output_scanline + i) * stride;
    jpeg_read_scanlines(&info, rows.data(), count);
    if (decoder.reports.lost) return false;  // the rest would be grey
  }
  jpeg_finish_decompress(&info);
  return !decoder.reports.lost;
}

}  // namespace

bool is_jpeg(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

Result<Image> decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& where, std::size_t scaled_to) {
  Decoder decoder;
  Image image;
  bool good = start(decoder, bytes, scaled_to);
  if (good) {
    image.width = decoder.info.output_width;
    image.height = decoder.info.output_height;
    image.rgb.resize(image.width * image.height * 3);
    good = read_rows(decoder, image.rgb.data());
  }
  if (good) return image;
  return fail(fmt::format("{}: no readable JPEG: {}", where,
                          decoder.refused ? decoder.refused : decoder.reports.message.data()),
              jpeg_hint);
}

}  // namespace strata::data
