// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "data/file_bytes.hpp"
#include "data/image.hpp"
#include "data/reader.hpp"
#include "data/resize.hpp"

namespace strata::data {
namespace {
constexpr std::size_t most_photo_bytes = std::size_t{256} << 20;
}

Result<void> read_photo(const std::filesystem::path& path, const ReadOptions& options, std::span<std::uint8_t> planes) {
  const auto bytes = STRATA_TRY(read_bytes(path, most_photo_bytes));
  const auto side = static_cast<std::size_t>(options.size);
  if (!is_jpeg(bytes) && !is_png(bytes))
    return fail(fmt::format("{}: neither JPEG nor PNG", path.string()), "strata reads these two");
  const auto image =
      STRATA_TRY(is_jpeg(bytes) ? decode_jpeg(bytes, path.string(), options.decode == Decode::scaled ? side : 0)
                                : decode_png(bytes, path.string()));
  resize_to_square(image, side, planes);
  return {};
}

bool is_image_name(const std::filesystem::path& path) {
  auto extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

}  // namespace strata::data
