// SPDX-License-Identifier: Apache-2.0
// SHA-256, for cache keys and for the identity of weights and inputs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace strata {

std::string sha256_hex(std::string_view bytes);                         // 64 lower-case hexadecimal digits
Result<std::string> sha256_of_file(const std::filesystem::path& path);  // error: unreadable file

}  // namespace strata
