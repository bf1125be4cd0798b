// SPDX-License-Identifier: Apache-2.0
// The data sets that strata knows by name: what they are, whose, where their publishers keep them, with which
// checksums.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "data/dataset.hpp"
#include "data/reader.hpp"

namespace strata::data {

struct Download {
  std::string url, md5;     // as the publisher gives it; of the file that lies behind the URL
  std::uint64_t bytes = 0;  // about; for what is said before it begins
  bool archive = false;     // unpacked below the data folder; otherwise kept in the set's own folder
};

struct CatalogueEntry {
  std::string name, about;
  std::string page, licence;
  std::string folder;                // below the data folder
  std::vector<std::string> classes;  // empty: read from the files
  Shape shape;                       // height 0: --size
  Targets kind = Targets::one_class;
  std::array<std::size_t, 2> count{};  // training and test images, as published
  std::vector<Download> downloads;
  std::vector<std::pair<std::string, std::string>> unpacked{};  // MD5 of files as the set reads them, by name
};

const std::vector<CatalogueEntry>& catalogue();
const CatalogueEntry* find_entry(const std::string& name);  // nullptr: no such set

// $STRATA_DATA, else $XDG_DATA_HOME/strata/data, else ~/.local/share/strata/data; empty: no home folder.
std::filesystem::path default_data_dir();

// A source for each file. Error: those that are missing.
Result<std::vector<SourceFiles>> a_source_each(const std::string& set, const std::filesystem::path& data_dir,
                                               const std::vector<std::filesystem::path>& files);
tl::unexpected<Error> missing_files(const std::string& set, const std::vector<std::string>& paths);
// Error: more records than published, none, or fewer without `partial`.
Result<void> check_count(std::size_t published, std::size_t got, bool partial, const std::string& where);

}  // namespace strata::data
