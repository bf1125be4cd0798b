// SPDX-License-Identifier: Apache-2.0
// A set, read once: pixels and labels in one safetensors file that is mapped, with what it was made from. It appears
// whole or not at all, and is made again when a source changed or its own bytes are not those that were written.
// The file: docs/data.md.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "data/dataset.hpp"
#include "data/reader.hpp"

namespace strata::data {

struct OpenOptions : ReadOptions {
  std::filesystem::path cache_dir;  // of all of strata's caches
  int threads = 1;
  bool skip_bad = false;  // leave out records that cannot be read, instead of refusing the set
  bool again = false;     // make the cache even if there is a good one
  bool make = true;       // false: only a cache that is there and good
  std::function<void(const std::string& doing, double seconds_left)> status;  // may be empty
  std::function<void(const std::string& line)> note;                          // likewise
};

struct SourceState {
  std::string name, sha256;
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

// How a cache came to be, and what it takes.
struct CacheFacts {
  std::filesystem::path file;  // empty: the set is part of the program
  std::uint64_t bytes = 0;
  bool made_now = false;
  double hash_s = 0, load_s = 0, read_s = 0, write_s = 0;  // sources' hashes; their files; decoding; the rest
  double read_cpu_s = 0;                                   // processor time of read_s, all threads together
  int threads = 0;                                         // that it was made with
  std::size_t skipped = 0;
  std::vector<std::string> skipped_why;  // of the first few
  std::vector<std::string> left_out;     // files of a folder that are none of its images, by reason
  std::vector<SourceState> sources;
  std::string sha256;  // of the tensors
};

struct CachedDataset {
  Dataset set;
  CacheFacts facts;
};

// Of what a training learns from: pixels, labels and classes, in the order of its splits. Empty: part of the program.
std::string content_sha256(const CachedDataset& opened);

// Whether it names a folder of images by class, and no set of the catalogue.
bool is_folder(const std::string& name);
// The name without the folder's path.
std::string set_name(const std::string& name);

// Where the cache of a set lies, whether or not it is there.
std::filesystem::path cache_file(const std::string& name, const OpenOptions& options);

// From the cache, made if need be. Every byte of it is checked.
Result<CachedDataset> open_dataset(const std::string& name, const OpenOptions& options);

}  // namespace strata::data
