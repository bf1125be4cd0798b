// SPDX-License-Identifier: Apache-2.0
// SHA-256, for cache keys and for the identity of weights, inputs and stored runs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.hpp"

struct evp_md_ctx_st;

namespace strata {

// Of bytes that come one after another.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  std::string hex();  // 64 lower-case hexadecimal digits; ends it

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string sha256_hex(std::string_view bytes);
Result<std::string> sha256_of_file(const std::filesystem::path& path);  // error: unreadable file, or as below

// Error: a file larger than memory (and 64 GiB), which nobody can use and which takes hours to hash: it may be sparse.
Result<void> check_size(const std::filesystem::path& path);

}  // namespace strata
