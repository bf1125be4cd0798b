// SPDX-License-Identifier: Apache-2.0
// Gets a set from its publisher, by the program curl: over HTTPS, resumed where it was cut off, and nothing is put in
// place whose checksum is not the publisher's.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/file_lock.hpp"
#include "common/result.hpp"
#include "data/catalogue.hpp"

namespace strata::data {

struct FetchOptions {
  std::filesystem::path data_dir;
  std::string from;          // a URL below which files of the same names lie; empty: the publisher's
  bool on_terminal = false;  // curl draws its own progress
  std::function<void(const std::string& line)> note;
};

// Where a download is looked for and put by hand: a file that lies there is checked and not fetched again.
std::filesystem::path place_of(const CatalogueEntry& entry, const Download& download,
                               const std::filesystem::path& data_dir);

// Held while a set is looked for and fetched: of two that fetch at once, the second finds what the first got.
Result<std::unique_ptr<FileLock>> lock_data_dir(const FetchOptions& options);

// Error: no network or no curl (Exit::environment, with what to do by hand), another checksum, no room.
Result<void> fetch(const CatalogueEntry& entry, const FetchOptions& options);

// Whether the files that the set reads are the publisher's, packed or not; how many of them have a known checksum.
Result<std::size_t> check_published(const CatalogueEntry& entry, const std::vector<std::filesystem::path>& files);

}  // namespace strata::data
