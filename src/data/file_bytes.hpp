// SPDX-License-Identifier: Apache-2.0
// A whole file in memory; what is gzip is unpacked, whatever the file is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::data {

using Bytes = std::vector<std::uint8_t>;

// At most `limit` bytes once unpacked. Errors: unreadable, no regular file, too large, damaged or cut gzip.
Result<Bytes> read_bytes(const std::filesystem::path& path, std::size_t limit);
// The members of a gzip file, one after another. `where` names it in errors.
Result<Bytes> gunzip(std::span<const std::uint8_t> packed, const std::string& where, std::size_t limit);
bool is_gzip(std::span<const std::uint8_t> bytes);

}  // namespace strata::data
