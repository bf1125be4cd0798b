// SPDX-License-Identifier: Apache-2.0
#include "common/hash.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "common/interrupt.hpp"

namespace strata {
namespace {

// That a file may have: what is hashed is read whole by somebody, who has this machine's memory.
std::uintmax_t most_bytes() {
  const auto pages = static_cast<std::uintmax_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  return std::max<std::uintmax_t>(std::uintmax_t{64} << 30,
                                  pages * static_cast<std::uintmax_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256::add(std::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> raw{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context_.get(), raw.data(), &length);
  std::string text;
  for (const unsigned char byte : raw) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

Result<void> check_size(const std::filesystem::path& path) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  if (none || size <= most_bytes()) return {};
  return fail(fmt::format("{} has {} bytes; allowed: {}", path.string(), size, most_bytes()),
              "it is not what it is called, or sparse: ls -ls shows what it takes on the disk", Exit::usage);
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  std::error_code none;
  const bool is_file = std::filesystem::is_regular_file(path, none);  // a pipe would be waited for
  std::ifstream in;
  if (is_file) in.open(path, std::ios::binary);
  if (!is_file || !in)
    return fail(fmt::format("cannot read {}", path.string()), "check that it exists, is a file and is readable",
                Exit::usage);
  STRATA_TRY(check_size(path));
  Sha256 digest;
  std::vector<char> buffer(1 << 20);
  while (in && !interrupted()) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    digest.add({buffer.data(), static_cast<std::size_t>(in.gcount())});
  }
  if (interrupted()) return fail(fmt::format("{}: reading it was interrupted", path.string()));
  return digest.hex();
}

}  // namespace strata
