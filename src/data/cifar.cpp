// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "common/hash.hpp"
#include "data/catalogue.hpp"
#include "data/file_bytes.hpp"
#include "data/formats.hpp"
#include "data/reader.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {
constexpr const char* cifar_hint = "get the files again: ./strata data fetch NAME";
}

Result<std::size_t> cifar_records(std::size_t bytes, std::size_t label_bytes, const std::string& where) {
  const auto record = label_bytes + cifar_image_bytes;
  if (bytes == 0 || bytes % record != 0)
    return fail(fmt::format("{}: has {} bytes: {} whole records of {} and {} bytes of another; allowed: whole records",
                            where, bytes, bytes / record, record, bytes % record),
                cifar_hint);
  return bytes / record;
}

Result<std::int64_t> read_cifar_record(std::span<const std::uint8_t> bytes, std::size_t label_bytes, std::size_t i,
                                       std::size_t classes, const std::string& where, std::span<std::uint8_t> image) {
  const auto* record = bytes.data() + i * (label_bytes + cifar_image_bytes);
  const auto label = record[label_bytes - 1];
  if (label >= classes)
    return fail(fmt::format("{}: record {}: label {}; allowed: 0 to {}", where, i, label, classes - 1), cifar_hint);
  std::memcpy(image.data(), record + label_bytes, cifar_image_bytes);
  return label;
}

namespace {

class CifarReader : public Reader {
 public:
  CifarReader(std::string set, ReadOptions options)
      : set_(std::move(set)), options_(std::move(options)), label_bytes_(set_ == "cifar100" ? 2 : 1) {}

  Result<std::vector<SourceFiles>> sources() const override {
    std::vector<fs::path> all;
    for (const Part part : both_parts)
      for (const auto& path : paths(part)) all.push_back(path);
    auto sources = a_source_each(set_, options_.data_dir, all);
    const auto pickles = options_.data_dir / (label_bytes_ == 2 ? "cifar-100-python" : "cifar-10-batches-py");
    if (std::error_code ec; !sources && fs::is_directory(pickles, ec))
      sources.error().what +=
          fmt::format("; {} holds the same images as pickles of Python, which strata does not run", pickles.string());
    return sources;
  }

  Result<Description> load() override {
    const auto& entry = *find_entry(set_);
    Description about{.classes = entry.classes, .shape = entry.shape};
    for (const Part part : both_parts) {
      auto& files = files_[index_of(part)];
      files.clear();
      std::string labels;
      std::size_t count = 0;
      for (const auto& path : paths(part)) {
        auto bytes = STRATA_TRY(read_bytes(path, entry.count[index_of(part)] * (label_bytes_ + cifar_image_bytes)));
        const auto records = STRATA_TRY(cifar_records(bytes.size(), label_bytes_, path.string()));
        const auto expected = entry.count[index_of(part)] / paths(part).size();
        STRATA_TRY(check_count(expected, records, options_.partial, path.string()));
        for (std::size_t i = 0; i < records; ++i)
          labels += static_cast<char>(bytes[i * (label_bytes_ + cifar_image_bytes) + label_bytes_ - 1]);
        files.push_back({.path = path.string(), .first = count, .bytes = std::move(bytes)});
        count += records;
      }
      about.count[index_of(part)] = count;
      about.list_sha256[index_of(part)] = sha256_hex(labels);
    }
    return about;
  }

  Result<void> read(Part part, std::size_t i, std::span<std::uint8_t> image, LabelPlace label) const override {
    const auto& files = files_[index_of(part)];
    std::size_t at = files.size() - 1;
    while (files[at].first > i) --at;
    *label.label = STRATA_TRY(read_cifar_record(files[at].bytes, label_bytes_, i - files[at].first,
                                                find_entry(set_)->classes.size(), files[at].path, image));
    return {};
  }

 private:
  struct File {
    std::string path;
    std::size_t first = 0;  // record of the part
    Bytes bytes;
  };

  std::vector<fs::path> paths(Part part) const {
    const auto folder = options_.data_dir / find_entry(set_)->folder;
    if (label_bytes_ == 2) return {folder / (part == Part::train ? "train.bin" : "test.bin")};
    if (part == Part::test) return {folder / "test_batch.bin"};
    std::vector<fs::path> out;
    for (int batch = 1; batch <= 5; ++batch) out.push_back(folder / fmt::format("data_batch_{}.bin", batch));
    return out;
  }

  std::string set_;
  ReadOptions options_;
  std::size_t label_bytes_;
  std::array<std::vector<File>, 2> files_;
};

}  // namespace

std::unique_ptr<Reader> make_cifar_reader(const std::string& set, const ReadOptions& options) {
  return std::make_unique<CifarReader>(set, options);
}

}  // namespace strata::data
