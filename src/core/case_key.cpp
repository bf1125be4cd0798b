// SPDX-License-Identifier: Apache-2.0
// By itself, since levels link the rest of src/core and not what hashes.
#include "common/hash.hpp"
#include "core/case.hpp"

namespace strata::core {

std::string key_of(const Case& question) {
  constexpr std::size_t digits = 16;
  return sha256_hex(question.canonical()).substr(0, digits);
}

}  // namespace strata::core
