// SPDX-License-Identifier: Apache-2.0
// A photograph in a file, JPEG or PNG by its first bytes, as a square of planes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "common/result.hpp"
#include "data/reader.hpp"

namespace strata::data {

// `planes`: [3, options.size, options.size]. Errors: no such file, neither JPEG nor PNG, damaged.
Result<void> read_photo(const std::filesystem::path& path, const ReadOptions& options, std::span<std::uint8_t> planes);

// Whether the name ends as that of a photograph: .jpg, .jpeg or .png, in any case.
bool is_image_name(const std::filesystem::path& path);

}  // namespace strata::data
