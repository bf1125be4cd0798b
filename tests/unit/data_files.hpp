// SPDX-License-Identifier: Apache-2.0
// Small data sets in their publishers' formats, made by the tests, and what a test breaks in them.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "data/cache.hpp"

namespace strata::data::testing {

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline std::string error_of(const Result<CachedDataset>& opened) {
  return opened ? "opened" : opened.error().what + " | " + opened.error().hint;
}

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

inline std::string idx(std::vector<std::uint32_t> sizes, const std::string& values) {
  std::string out{0, 0, 8, static_cast<char>(sizes.size())};
  for (const auto size : sizes) out += big_endian(size);
  return out + values;
}

// A folder of its own with a place for sets and one for caches.
struct Place {
  std::filesystem::path folder;
  OpenOptions options;
  std::vector<std::string> notes;

  Place() {
    static std::atomic<int> number{0};
    folder = std::filesystem::temp_directory_path() /
             ("strata_data_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    std::filesystem::create_directories(folder / "sets");
    std::filesystem::create_directories(folder / "cache");
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    std::filesystem::permissions(folder / "cache", std::filesystem::perms::owner_all);
    options.data_dir = folder / "sets";
    options.cache_dir = folder / "cache";
    options.threads = 2;
    options.partial = true;
    options.note = [this](const std::string& note) { notes.push_back(note); };
  }
  ~Place() { std::filesystem::remove_all(folder); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // Image i of a part is filled with 10 * i + (part is test); its label is labels[i].
  void mnist(const std::string& train_labels, const std::string& test_labels) const {
    const auto write = [&](const char* prefix, const std::string& labels, int more) {
      std::string images;
      for (std::size_t i = 0; i < labels.size(); ++i) images.append(28 * 28, static_cast<char>(10 * i + more));
      const auto count = static_cast<std::uint32_t>(labels.size());
      write_file(options.data_dir / "mnist" / (std::string(prefix) + "-images-idx3-ubyte"),
                 idx({count, 28, 28}, images));
      write_file(options.data_dir / "mnist" / (std::string(prefix) + "-labels-idx1-ubyte"), idx({count}, labels));
    };
    write("train", train_labels, 0);
    write("t10k", test_labels, 1);
  }
};

}  // namespace strata::data::testing
