// SPDX-License-Identifier: Apache-2.0
#include "common/hash.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

namespace strata {
namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(const void* data, std::size_t bytes) { EVP_DigestUpdate(context_.get(), data, bytes); }
  std::string hex() {
    std::array<unsigned char, 32> raw{};
    unsigned length = 0;
    EVP_DigestFinal_ex(context_.get(), raw.data(), &length);
    std::string text;
    for (const unsigned char byte : raw) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Digest digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hex();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(fmt::format("cannot read {}", path.string()), "check that the file exists and is readable",
                Exit::usage);
  Digest digest;
  std::vector<char> buffer(1 << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    digest.add(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  return digest.hex();
}

}  // namespace strata
