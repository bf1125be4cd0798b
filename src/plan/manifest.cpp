// SPDX-License-Identifier: Apache-2.0
#include "plan/manifest.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/hash.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// What is wrong with one file; empty: nothing.
std::string fault_of(const fs::path& path, const Json& entry) {
  if (!entry.is_object()) return "is not described in manifest.json";
  std::error_code ec;
  if (const auto link = entry.find("link"); link != entry.end())
    return link->is_string() && fs::read_symlink(path, ec) == link->get<std::string>() ? "" : "is another link";
  const auto bytes = entry.find("bytes"), hash = entry.find("sha256");
  if (bytes == entry.end() || !bytes->is_number_unsigned() || hash == entry.end() || !hash->is_string())
    return "is not described in manifest.json";
  if (!fs::is_regular_file(path, ec)) return "is missing";
  if (const auto size = fs::file_size(path, ec); ec || size != bytes->get<std::uint64_t>())
    return fmt::format("has {} bytes instead of {}", ec ? 0 : size, bytes->get<std::uint64_t>());
  const auto digest = sha256_of_file(path);
  return digest && *digest == hash->get<std::string>() ? "" : "has another content than in manifest.json";
}

}  // namespace

Result<void> check_manifest(const fs::path& bundle) {
  std::ifstream in(bundle / "manifest.json");
  const auto manifest = Json::parse(in, nullptr, false);
  const auto files = manifest.is_object() ? manifest.find("files") : manifest.end();
  if (!manifest.is_object() || files == manifest.end() || !files->is_object() || !files->contains("bundle.json"))
    return fail("manifest.json is missing or damaged");
  for (const auto& [name, entry] : files->items())
    if (const auto fault = fault_of(bundle / name, entry); !fault.empty())
      return fail(fmt::format("{} {}", name, fault));
  return {};
}

}  // namespace strata::plan
