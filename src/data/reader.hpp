// SPDX-License-Identifier: Apache-2.0
// What a format's reader gives: which files it reads, what is in them, and each record on its own, from any thread.
// It knows nothing of caches.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "data/dataset.hpp"

namespace strata::data {

enum class Part { train, test };
constexpr std::array<Part, 2> both_parts{Part::train, Part::test};
constexpr std::size_t index_of(Part part) {
  return part == Part::train ? 0 : 1;
}
constexpr const char* name_of(Part part) {
  return part == Part::train ? "train" : "test";
}

enum class Decode { full, scaled };  // scaled: JPEGs are decoded at a fraction of their size, no smaller than wanted

struct ReadOptions {
  std::filesystem::path data_dir;
  std::int64_t size = 224;  // of the square that images of different sizes become
  Decode decode = Decode::full;
  bool partial = false;  // files may hold fewer records than the publisher's
};

// Files that belong together, as one line of what a cache was made from. Paths below data_dir, or absolute.
struct SourceFiles {
  std::string name;
  std::vector<std::filesystem::path> files;  // absolute, in an order that does not depend on the folder's
};

struct Description {
  std::vector<std::string> classes;
  Shape shape;
  Targets kind = Targets::one_class;
  int highest_value = 255;
  std::array<std::size_t, 2> count{};      // by index_of(Part)
  std::array<std::string, 2> list_sha256;  // likewise
  std::vector<std::string> left_out;       // what lies beside the images and is none of them, in words
};

// Where a record's label goes.
struct LabelPlace {
  std::int64_t* label = nullptr;      // one_class
  std::span<std::uint8_t> targets{};  // several_classes; one for each class
};

class Reader {
 public:
  virtual ~Reader() = default;
  // Cheap. Error: a file is missing.
  virtual Result<std::vector<SourceFiles>> sources() const = 0;
  // Before any record.
  virtual Result<Description> load() = 0;
  // Record `i` of a part; `image` has shape.bytes(). Errors name file and record. Called from several threads.
  virtual Result<void> read(Part part, std::size_t i, std::span<std::uint8_t> image, LabelPlace label) const = 0;
};

// A set by its name in the catalogue, or a folder of images. Error: no such name, with the nearest.
Result<std::unique_ptr<Reader>> make_reader(const std::string& name, const ReadOptions& options);

// A photograph in a file, JPEG or PNG by its first bytes, as a square of planes: [3, options.size, options.size].
// Errors: no such file, neither JPEG nor PNG, damaged.
Result<void> read_photo(const std::filesystem::path& path, const ReadOptions& options, std::span<std::uint8_t> planes);
// Whether the name ends as that of a photograph: .jpg, .jpeg or .png, in any case.
bool is_image_name(const std::filesystem::path& path);

// What each format brings (one file each).
std::unique_ptr<Reader> make_idx_reader(const std::string& set, const ReadOptions& options);
std::unique_ptr<Reader> make_cifar_reader(const std::string& set, const ReadOptions& options);
std::unique_ptr<Reader> make_stl_reader(const std::string& set, const ReadOptions& options);
std::unique_ptr<Reader> make_voc_reader(const std::string& set, const ReadOptions& options);
std::unique_ptr<Reader> make_folder_reader(const std::string& folder, const ReadOptions& options);

}  // namespace strata::data
