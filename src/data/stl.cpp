// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "common/hash.hpp"
#include "data/catalogue.hpp"
#include "data/file_bytes.hpp"
#include "data/formats.hpp"
#include "data/reader.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {
constexpr const char* stl_hint = "get the files again: ./strata data fetch stl10";
}

Result<std::size_t> stl_records(std::size_t image_file_bytes, std::size_t label_file_bytes,
                                const std::string& image_file, const std::string& label_file) {
  if (image_file_bytes == 0 || image_file_bytes % stl_image_bytes != 0)
    return fail(fmt::format("{}: has {} bytes: {} whole images of {} and {} bytes of another; allowed: whole images",
                            image_file, image_file_bytes, image_file_bytes / stl_image_bytes, stl_image_bytes,
                            image_file_bytes % stl_image_bytes),
                stl_hint);
  const auto count = image_file_bytes / stl_image_bytes;
  if (label_file_bytes != count)
    return fail(fmt::format("{}: {} labels for the {} images of {}", label_file, label_file_bytes, count, image_file),
                stl_hint);
  return count;
}

Result<std::int64_t> read_stl_record(std::span<const std::uint8_t> images, std::span<const std::uint8_t> labels,
                                     std::size_t i, std::size_t classes, const std::string& label_file,
                                     std::span<std::uint8_t> image) {
  const auto label = labels[i];
  if (label < 1 || label > classes)
    return fail(fmt::format("{}: record {}: label {}; allowed: 1 to {}", label_file, i, label, classes), stl_hint);
  for (std::size_t plane = 0; plane < 3; ++plane) {
    const auto* from = images.data() + i * stl_image_bytes + plane * stl_side * stl_side;
    auto* to = image.data() + plane * stl_side * stl_side;
    for (std::size_t y = 0; y < stl_side; ++y)
      for (std::size_t x = 0; x < stl_side; ++x) to[y * stl_side + x] = from[x * stl_side + y];
  }
  return label - 1;
}

namespace {

class StlReader : public Reader {
 public:
  StlReader(std::string set, ReadOptions options) : set_(std::move(set)), options_(std::move(options)) {}

  Result<std::vector<SourceFiles>> sources() const override {
    std::vector<fs::path> all;
    for (const Part part : both_parts)
      for (const char* kind : {"X", "y"}) all.push_back(path_of(part, kind));
    return a_source_each(set_, options_.data_dir, all);
  }

  Result<Description> load() override {
    const auto& entry = *find_entry(set_);
    Description about{.classes = entry.classes, .shape = entry.shape};
    for (const Part part : both_parts) {
      auto& [images, labels] = parts_[index_of(part)];
      const auto most = entry.count[index_of(part)];
      auto image_bytes = STRATA_TRY(read_bytes(path_of(part, "X"), most * stl_image_bytes));
      auto label_bytes = STRATA_TRY(read_bytes(path_of(part, "y"), most));
      images = std::move(image_bytes);
      labels = std::move(label_bytes);
      const auto count =
          stl_records(images.size(), labels.size(), path_of(part, "X").string(), path_of(part, "y").string());
      if (!count) return tl::unexpected(count.error());
      STRATA_TRY(check_count(most, *count, options_.partial, path_of(part, "X").string()));
      about.count[index_of(part)] = *count;
      about.list_sha256[index_of(part)] = sha256_hex({reinterpret_cast<const char*>(labels.data()), labels.size()});
    }
    return about;
  }

  Result<void> read(Part part, std::size_t i, std::span<std::uint8_t> image, LabelPlace label) const override {
    const auto& [images, labels] = parts_[index_of(part)];
    const auto got =
        read_stl_record(images, labels, i, find_entry(set_)->classes.size(), path_of(part, "y").string(), image);
    if (!got) return tl::unexpected(got.error());
    *label.label = *got;
    return {};
  }

 private:
  struct Loaded {
    Bytes images, labels;
  };
  fs::path path_of(Part part, const char* what) const {
    return options_.data_dir / find_entry(set_)->folder / fmt::format("{}_{}.bin", name_of(part), what);
  }

  std::string set_;
  ReadOptions options_;
  std::array<Loaded, 2> parts_;
};

}  // namespace

std::unique_ptr<Reader> make_stl_reader(const std::string& set, const ReadOptions& options) {
  return std::make_unique<StlReader>(set, options);
}

}  // namespace strata::data
