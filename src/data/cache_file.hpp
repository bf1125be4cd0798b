// SPDX-License-Identifier: Apache-2.0
// What cache.cpp and make_cache.cpp agree on: the tensors' names, the metadata, the checksum, the stamp of sources.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "data/cache.hpp"

namespace strata::data {

constexpr int cache_format = 1;
constexpr const char* cache_metadata_key = "strata_data";

inline std::string images_name(Part part) {
  return fmt::format("{}.images", name_of(part));
}
inline std::string labels_name(Part part, Targets kind) {
  return fmt::format("{}.{}", name_of(part), kind == Targets::one_class ? "labels" : "targets");
}
inline std::size_t label_bytes(Targets kind, std::size_t classes) {
  return kind == Targets::one_class ? sizeof(std::int64_t) : classes;
}

// Of names, sizes and times, so that a change is seen without reading; that a file is missing, too.
std::string stamp_of(const SourceFiles& source);
// Hash of the hashes of blocks, so that threads share the work.
std::string checksum(std::span<const std::byte> bytes, int threads);
// What depends on how a set is read; part of the cache's name and of its metadata.
nlohmann::json options_json(const ReadOptions& options);

// Makes the file anew at `place`; the folder is there, and nobody else makes it at the same time.
Result<void> make_cache(const std::string& name, Reader& reader, const std::vector<SourceFiles>& sources,
                        const std::filesystem::path& place, const OpenOptions& options);

}  // namespace strata::data
