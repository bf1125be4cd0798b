// SPDX-License-Identifier: Apache-2.0
#include "report/contact_sheet.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "data/image.hpp"
#include "report/format.hpp"
#include "report/render/html_text.hpp"

namespace strata::report {
using document::escape_html;
namespace {

std::string base64(const std::string& bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

// Planes as pixels, the highest value white.
std::vector<std::uint8_t> interleaved(std::span<const std::uint8_t> planes, const data::Shape& shape, int highest) {
  const auto area = static_cast<std::size_t>(shape.height * shape.width);
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<std::uint8_t> out(planes.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < area; ++i)
      out[i * channels + c] = static_cast<std::uint8_t>(std::min(255, planes[c * area + i] * 255 / highest));
  return out;
}

std::string classes_of(const data::Dataset& set, const data::Split& split, std::size_t i) {
  if (set.kind == data::Targets::one_class) return set.classes[static_cast<std::size_t>(split.labels[i])];
  std::string out;
  for (std::size_t c = 0; c < set.classes.size(); ++c) {
    const auto target = split.targets[i * set.classes.size() + c];
    if (target == 0) continue;
    out += (out.empty() ? "" : ", ") + set.classes[c] + (target == data::difficult_target ? " (difficult)" : "");
  }
  return out.empty() ? "none" : out;
}

constexpr const char* sheet_style =
    "body{font:14px/1.4 sans-serif;margin:1.5em;color:#222;background:#fff}"
    "main{display:grid;grid-template-columns:repeat(auto-fill,minmax(112px,1fr));gap:12px}"
    "figure{margin:0}img{width:96px;height:96px;image-rendering:pixelated;background:#000}"
    "figcaption{font-size:12px;overflow-wrap:anywhere}";

}  // namespace

std::string contact_sheet(const data::Dataset& set, data::Part part, std::size_t count) {
  const auto& split = part == data::Part::train ? set.train : set.test;
  const auto shown = std::min(count, split.count);
  const auto title =
      escape_html(fmt::format("{}: {} of {} {} images", set.name, report::count(static_cast<double>(shown)),
                              report::count(static_cast<double>(split.count)), data::name_of(part)));
  auto page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style></head>\n"
      "<body><h1>{0}</h1><p>{2}x{3}x{4}, {5} classes.</p><main>\n",
      title, sheet_style, set.shape.channels, set.shape.height, set.shape.width, set.classes.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const auto i = k * split.count / shown;
    const auto pixels =
        interleaved(split.images.subspan(i * set.shape.bytes(), set.shape.bytes()), set.shape, set.highest_value);
    const auto png =
        data::encode_png(pixels, static_cast<std::uint32_t>(set.shape.width),
                         static_cast<std::uint32_t>(set.shape.height), static_cast<int>(set.shape.channels));
    const auto label = escape_html(classes_of(set, split, i));
    page += fmt::format(
        "<figure><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"><figcaption>{2}: {0}</figcaption></figure>\n",
        label, base64(png), i);
  }
  return page + "</main></body></html>\n";
}

}  // namespace strata::report
