// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "common/hash.hpp"
#include "data/catalogue.hpp"
#include "data/file_bytes.hpp"
#include "data/formats.hpp"
#include "data/reader.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {

constexpr std::uint8_t idx_unsigned_byte = 0x08;
constexpr const char* idx_hint = "get the file again: ./strata data fetch NAME";

std::size_t big_endian_32(const std::uint8_t* at) {
  return (std::size_t{at[0]} << 24) | (std::size_t{at[1]} << 16) | (std::size_t{at[2]} << 8) | at[3];
}

}  // namespace

Result<Idx> parse_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions, const std::string& where) {
  const auto header = 4 + 4 * dimensions;
  if (bytes.size() < header)
    return fail(fmt::format("{}: has {} bytes, fewer than the {} of an IDX header", where, bytes.size(), header),
                idx_hint);
  const auto magic = big_endian_32(bytes.data());
  const auto expected = (std::size_t{idx_unsigned_byte} << 8) | dimensions;
  if (magic != expected)
    return fail(fmt::format("{}: the magic number is {:#010x}; allowed: {:#010x} (unsigned bytes in {} dimensions)",
                            where, magic, expected, dimensions),
                idx_hint);
  Idx idx;
  std::size_t count = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    idx.sizes.push_back(big_endian_32(bytes.data() + 4 + 4 * i));
    if (__builtin_mul_overflow(count, idx.sizes.back(), &count))
      return fail(fmt::format("{}: sizes too large to count", where), idx_hint);
  }
  if (bytes.size() - header != count)
    return fail(fmt::format("{}: holds {} bytes of values; its header announces {} ({} records)", where,
                            bytes.size() - header, count, idx.sizes.front()),
                idx_hint);
  idx.values = bytes.subspan(header);
  return idx;
}

namespace {

class IdxReader : public Reader {
 public:
  IdxReader(std::string set, ReadOptions options) : set_(std::move(set)), options_(std::move(options)) {}

  Result<std::vector<SourceFiles>> sources() const override {
    std::vector<fs::path> all;
    for (const char* name : file_names) all.push_back(place(name));
    return a_source_each(set_, options_.data_dir, all);
  }

  Result<Description> load() override {
    const auto& entry = *find_entry(set_);
    Description about{.classes = entry.classes, .shape = entry.shape};
    for (const Part part : both_parts) {
      auto& [images, labels, image_file, label_file] = parts_[index_of(part)];
      const auto files = index_of(part) * 2;
      const auto image_path = place(file_names[files]), label_path = place(file_names[files + 1]);
      image_file = image_path.string();
      label_file = label_path.string();
      const auto most = entry.count[index_of(part)];
      images = STRATA_TRY(read_bytes(image_path, 16 + most * entry.shape.bytes()));
      labels = STRATA_TRY(read_bytes(label_path, 8 + most));
      const auto image_idx = STRATA_TRY(parse_idx(images, 3, image_file));
      const auto label_idx = STRATA_TRY(parse_idx(labels, 1, label_file));
      STRATA_TRY(check_sizes(entry, part, image_idx, label_idx));
      about.count[index_of(part)] = image_idx.sizes[0];
      about.list_sha256[index_of(part)] = sha256_hex({reinterpret_cast<const char*>(labels.data()), labels.size()});
    }
    return about;
  }

  Result<void> read(Part part, std::size_t i, std::span<std::uint8_t> image, LabelPlace label) const override {
    const auto& loaded = parts_[index_of(part)];
    const auto value = loaded.labels[8 + i];
    const auto classes = find_entry(set_)->classes.size();
    if (value >= classes)
      return fail(fmt::format("{}: record {}: label {}; allowed: 0 to {}", loaded.label_file, i, value, classes - 1),
                  idx_hint);
    std::memcpy(image.data(), loaded.images.data() + 16 + i * image.size(), image.size());
    *label.label = value;
    return {};
  }

 private:
  struct Loaded {
    Bytes images, labels;
    std::string image_file, label_file;
  };
  static constexpr std::array<const char*, 4> file_names{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

  // As the publisher packs it, or unpacked, also by programs that write a dot (`train-images.idx3-ubyte`); in
  // torchvision's own folder too; where it is fetched to if it is in none.
  fs::path place(const std::string& name) const {
    auto dotted = name;
    dotted[dotted.find("-idx")] = '.';
    const auto own = options_.data_dir / find_entry(set_)->folder, torchvision = options_.data_dir / "MNIST";
    for (const auto& folder : {own, own / "raw", torchvision / "raw", torchvision})
      for (const auto& file : {name + ".gz", name, dotted, dotted + ".gz"}) {
        std::error_code ec;
        if (fs::is_regular_file(folder / file, ec)) return folder / file;
      }
    return own / (name + ".gz");
  }

  Result<void> check_sizes(const CatalogueEntry& entry, Part part, const Idx& images, const Idx& labels) const {
    const auto& loaded = parts_[index_of(part)];
    if (images.sizes[1] != static_cast<std::size_t>(entry.shape.height) ||
        images.sizes[2] != static_cast<std::size_t>(entry.shape.width))
      return fail(fmt::format("{}: images of {}x{}; allowed: {}x{}", loaded.image_file, images.sizes[1],
                              images.sizes[2], entry.shape.height, entry.shape.width),
                  idx_hint);
    if (images.sizes[0] != labels.sizes[0])
      return fail(fmt::format("{}: {} labels for the {} images of {}", loaded.label_file, labels.sizes[0],
                              images.sizes[0], loaded.image_file),
                  idx_hint);
    return check_count(entry.count[index_of(part)], images.sizes[0], options_.partial, loaded.image_file);
  }

  std::string set_;
  ReadOptions options_;
  std::array<Loaded, 2> parts_;
};

}  // namespace

std::unique_ptr<Reader> make_idx_reader(const std::string& set, const ReadOptions& options) {
  return std::make_unique<IdxReader>(set, options);
}

}  // namespace strata::data
