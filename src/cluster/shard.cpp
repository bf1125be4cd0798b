// SPDX-License-Identifier: Apache-2.0
#include "cluster/shard.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "common/hash.hpp"
#include "common/text.hpp"

namespace strata::cluster {
namespace {

constexpr std::size_t kIdDigits = 16;

nlohmann::json without_folders(nlohmann::json value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.starts_with('/')) return std::filesystem::path(text).filename().string();
  }
  if (value.is_structured())
    for (auto& part : value) part = without_folders(std::move(part));
  return value;
}

}  // namespace

std::string Shard::text() const {
  return fmt::format("{}/{}", number, count);
}

Result<Shard> read_shard(const std::string& text) {
  const auto parts = split(text, '/');
  const auto own = parts.size() == 2 ? number<int>(parts[0]) : std::nullopt;
  const auto all = parts.size() == 2 ? number<int>(parts[1]) : std::nullopt;
  if (!own || !all)
    return fail(fmt::format("--shard {}: write which part of how many, as 2/8", text), "--shard 1/2, and 2/2 elsewhere",
                Exit::usage);
  if (*all < 1 || *all > most_shards)
    return fail(fmt::format("--shard {}: allowed: 1 to {} shards", text, most_shards), "--shard 1/2", Exit::usage);
  if (*own < 1 || *own > *all)
    return fail(fmt::format("--shard {}: allowed: 1/{} to {}/{}", text, *all, *all, *all), "shards count from 1",
                Exit::usage);
  return Shard{*own, *all};
}

std::string id_of_whole(const nlohmann::json& question) {
  return sha256_hex(without_folders(question).dump()).substr(0, kIdDigits);
}

}  // namespace strata::cluster
