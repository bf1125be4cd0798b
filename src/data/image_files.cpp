// SPDX-License-Identifier: Apache-2.0
#include "data/image_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "common/hash.hpp"
#include "common/places.hpp"
#include "common/staged_folder.hpp"
#include "data/cache.hpp"
#include "data/image.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {

// Of the files that a set is read from: paths, sizes and times of change.
std::string state_of(const std::vector<SourceFiles>& sources) {
  std::string all;
  for (const auto& source : sources)
    for (const auto& file : source.files) {
      std::error_code ec;
      const auto bytes = fs::file_size(file, ec);
      const auto changed = fs::last_write_time(file, ec).time_since_epoch().count();
      all += fmt::format("{}\n{} {}\n", file.string(), bytes, changed);
    }
  return sha256_hex(all).substr(0, 12);
}

std::vector<fs::path> photographs(const std::vector<SourceFiles>& sources) {
  std::vector<fs::path> all;
  for (const auto& source : sources)
    std::copy_if(source.files.begin(), source.files.end(), std::back_inserter(all), is_image_name);
  return all;
}

Result<void> write_png(const fs::path& path, std::span<const std::uint8_t> planes, const Shape& shape, int highest) {
  std::vector<std::uint8_t> pixels(planes.size());
  const auto channels = static_cast<std::size_t>(shape.channels), places = planes.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < places; ++i)
      pixels[i * channels + c] = static_cast<std::uint8_t>(planes[c * places + i] * 255 / highest);
  std::ofstream file(path, std::ios::binary);
  file << encode_png(pixels, static_cast<std::uint32_t>(shape.width), static_cast<std::uint32_t>(shape.height),
                     static_cast<int>(channels));
  file.close();
  if (!file) return fail(fmt::format("{}: cannot be written", path.string()), "free some space in the cache");
  return {};
}

fs::path numbered(const fs::path& folder, std::size_t i, const std::string& extension) {
  return folder / fmt::format("{:06}{}", i, extension);
}

// What --skip-bad leaves out: counted, with the first reason.
class LeftOut {
 public:
  explicit LeftOut(const ImageFilesOptions& options) : options_(options) {}
  // The record's error, unless such records are left out.
  Result<void> take(const Error& error) {
    if (!options_.skip_bad) return tl::unexpected(error);
    if (count_++ == 0) first_ = error.what;
    return {};
  }
  void tell() const {
    if (count_ > 0 && options_.note)
      options_.note(fmt::format("{} images that cannot be read are left out; the first: {}", count_, first_));
  }

 private:
  const ImageFilesOptions& options_;
  std::size_t count_ = 0;
  std::string first_;
};

Result<void> write_records(const Reader& reader, const Description& about, const ImageFilesOptions& options,
                           const fs::path& folder) {
  std::vector<std::uint8_t> image(about.shape.bytes()), targets(about.classes.size());
  std::int64_t label = 0;
  LeftOut left_out(options);
  for (std::size_t i = 0, written = 0; written < options.most && i < about.count[index_of(Part::train)]; ++i) {
    if (const auto read = reader.read(Part::train, i, image, {.label = &label, .targets = targets}); !read) {
      STRATA_TRY(left_out.take(read.error()));
      continue;
    }
    STRATA_TRY(write_png(numbered(folder, written++, ".png"), image, about.shape, about.highest_value));
  }
  left_out.tell();
  return {};
}

Result<void> write_digits(std::size_t most, const fs::path& folder) {
  const auto set = digits();
  for (std::size_t i = 0; i < std::min(most, set.train.count); ++i)
    if (auto done =
            write_png(numbered(folder, i, ".png"), set.train.images.subspan(i * set.shape.bytes(), set.shape.bytes()),
                      set.shape, set.highest_value);
        !done)
      return done;
  return {};
}

Result<void> copy_photographs(const std::vector<fs::path>& photos, const ImageFilesOptions& options,
                              const fs::path& folder) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * options.size * options.size));
  LeftOut left_out(options);
  for (std::size_t i = 0, copied = 0; copied < options.most && i < photos.size(); ++i) {
    if (options.skip_bad)  // else whoever reads the copies says what is wrong with one
      if (const auto read = read_photo(photos[i], options, pixels); !read) {
        STRATA_TRY(left_out.take(read.error()));
        continue;
      }
    std::error_code ec;
    fs::copy_file(photos[i], numbered(folder, copied++, photos[i].extension().string()), ec);
    if (ec)
      return fail(fmt::format("{}: cannot be copied: {}", photos[i].string(), ec.message()),
                  "./strata data verify NAME says what is wrong with the set's files");
  }
  left_out.tell();
  return {};
}

}  // namespace

Result<fs::path> image_files(const std::string& name, ImageFilesOptions options, const fs::path& cache) {
  options.partial = true;
  std::unique_ptr<Reader> reader;
  std::vector<SourceFiles> sources;
  if (name != "digits") {
    reader = STRATA_TRY(make_reader(name, options));
    sources = STRATA_TRY(reader->sources());
  }
  const auto called = reader && is_folder(name) ? fs::path(name).lexically_normal().filename().string() : name;
  const auto place = cache / "images" /
                     fmt::format("{}-{}{}", state_of(sources), options.most, options.skip_bad ? "-skip" : "") /
                     called;  // cases are named by it
  if (there_is(place)) return place;
  std::error_code ec;
  fs::create_directories(place.parent_path(), ec);
  auto staged = STRATA_TRY(make_folder_beside(place));
  const auto photos = photographs(sources);
  auto written = !reader          ? write_digits(options.most, staged)
                 : photos.empty() ? Result<void>()
                                  : copy_photographs(photos, options, staged);
  if (written && reader && photos.empty()) {
    const auto about = reader->load();
    written = about ? write_records(*reader, *about, options, staged) : tl::unexpected(about.error());
  }
  if (written && put_in_place(staged, place) && !there_is(place))
    written =
        fail(fmt::format("{}: cannot be written", place.string()), "name another place for the cache: STRATA_CACHE");
  if (!written) {
    fs::remove_all(staged, ec);
    return tl::unexpected(written.error());
  }
  return place;
}

}  // namespace strata::data
