// SPDX-License-Identifier: Apache-2.0
// SHA-256 by OpenSSL's libcrypto.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace strata {

std::string sha256(std::span<const std::byte> bytes);  // 64 lower-case hexadecimal digits

}  // namespace strata
