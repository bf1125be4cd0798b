// SPDX-License-Identifier: Apache-2.0
// Folders of images by class. What is trained and tested on is a list in a file: the user's own, or one that is written
// at the first use and kept, so that a file that is added later changes nothing unseen.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "common/escape.hpp"
#include "common/hash.hpp"
#include "common/text.hpp"
#include "common/write_whole.hpp"
#include "data/file_bytes.hpp"
#include "data/reader.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t most_list_bytes = std::size_t{1} << 30;
constexpr const char* folder_hint =
    "it needs train/CLASS/image.jpg and test/CLASS/image.jpg (or val/), or lists of its images by path: train.txt, "
    "test.txt (docs/data.md)";

class FolderReader : public Reader {
 public:
  FolderReader(const std::string& folder, ReadOptions options) : options_(std::move(options)) {
    std::error_code ec;
    root_ = fs::weakly_canonical(folder, ec);
    if (!root_.has_filename()) root_ = root_.parent_path();
  }

  Result<std::vector<SourceFiles>> sources() const override {
    std::error_code ec;
    if (!fs::is_directory(root_, ec))
      return fail(fmt::format("{}: there is no such folder", root_.string()), folder_hint, Exit::usage,
                  {.where = root_.string(), .allowed = "a folder"});
    std::vector<SourceFiles> out;
    SourceFiles photos{.name = root_.filename().string(), .files = {}};
    for (const Part part : both_parts) {
      auto list = STRATA_TRY(list_of(part));
      const auto images = STRATA_TRY(read_image_list(list));
      for (const auto& image : images) photos.files.push_back(root_ / image);
      out.push_back({.name = fmt::format("list of {} images", name_of(part)), .files = {list}});
    }
    out.push_back(std::move(photos));
    return out;
  }

  Result<Description> load() override {
    Description about{.classes = {}, .shape = {3, options_.size, options_.size}};
    std::set<std::string> classes;
    for (const Part part : both_parts) {
      const auto list = STRATA_TRY(list_of(part));
      auto images = STRATA_TRY(read_image_list(list));
      auto& loaded = images_[index_of(part)];
      loaded.assign(images.begin(), images.end());
      about.count[index_of(part)] = loaded.size();
      const auto hash = STRATA_TRY(sha256_of_file(list));
      about.list_sha256[index_of(part)] = hash;
      if (list != own_list(part)) {
        const auto words = STRATA_TRY(left_out(part, list, images));
        about.left_out.insert(about.left_out.end(), words.begin(), words.end());
      }
      if (part == Part::train)
        for (const auto& image : loaded) classes.insert(class_of(image));
    }
    classes_.assign(classes.begin(), classes.end());
    about.classes = classes_;
    return about;
  }

  Result<void> read(Part part, std::size_t i, std::span<std::uint8_t> image, LabelPlace label) const override {
    const auto& path = images_[index_of(part)][i];
    const auto name = class_of(path);
    const auto it = std::lower_bound(classes_.begin(), classes_.end(), name);
    if (it == classes_.end() || *it != name)
      return fail(fmt::format("{}: class '{}', of which there is no training image", (root_ / path).string(),
                              escape::one_line(name)),
                  "every class needs training images");
    *label.label = it - classes_.begin();
    return read_photo(root_ / path, options_, image);
  }

 private:
  static std::string class_of(const fs::path& image) { return image.parent_path().filename().string(); }

  // What lies in a split's folder, by paths below the root as they are spelled: a link's label is that of its own
  // place.
  struct Found {
    std::vector<std::string> images;
    std::map<std::string, std::vector<std::string>> left_out;  // by reason
  };

  Result<Found> look_into(const fs::path& folder) const {
    Found found;
    const auto name = [&](const fs::path& path) { return path.lexically_relative(root_).string(); };
    std::error_code ec, none;
    for (const auto& entry : fs::directory_iterator(folder, ec)) {
      if (!entry.is_directory(none)) {
        found.left_out["in no folder of a class"].push_back(name(entry.path()));
        continue;
      }
      const auto before = found.images.size();
      for (const auto& file : fs::directory_iterator(entry.path(), none)) {
        if (file.is_directory(none))
          for (const auto& deeper : fs::recursive_directory_iterator(file.path(), none))
            found.left_out["in a folder below that of a class"].push_back(name(deeper.path()));
        else if (is_image_name(file.path()))
          found.images.push_back(name(file.path()));
        else
          found.left_out["not named .jpg, .jpeg or .png"].push_back(name(file.path()));
      }
      if (found.images.size() == before) found.left_out["a class without an image"].push_back(name(entry.path()));
    }
    if (ec) return fail(fmt::format("{}: cannot be listed: {}", folder.string(), ec.message()), folder_hint);
    std::sort(found.images.begin(), found.images.end());
    return found;
  }

  // In words, what strata's own list of a split does not have.
  Result<std::vector<std::string>> left_out(Part part, const fs::path& list,
                                            const std::vector<std::string>& listed) const {
    auto found = STRATA_TRY(look_into(folder_of(part)));
    const std::unordered_set<std::string> taken(listed.begin(), listed.end());
    const auto later = fmt::format("newer than the list of images ({}; remove it to take them)", list.string());
    for (const auto& image : found.images)
      if (!taken.contains(image)) found.left_out[later].push_back(image);
    std::vector<std::string> out;
    for (const auto& [why, paths] : found.left_out)
      out.push_back(escape::one_line(fmt::format("{}: {} {}: {}{}", name_of(part), paths.size(), why,
                                                 *std::min_element(paths.begin(), paths.end()),
                                                 paths.size() > 1 ? ", ..." : "")));
    return out;
  }

  fs::path own_list(Part part) const { return root_ / fmt::format("{}.txt", name_of(part)); }

  // Of a split; empty: there is none.
  fs::path folder_of(Part part) const {
    for (const char* folder : {name_of(part), part == Part::test ? "val" : name_of(part)})
      if (fs::is_directory(root_ / folder)) return root_ / folder;
    return {};
  }

  // The user's list, or strata's own, made now if there is none.
  Result<fs::path> list_of(Part part) const {
    const auto own = own_list(part);
    if (fs::is_regular_file(own)) return own;
    const auto place = options_.data_dir / "lists" /
                       fmt::format("{}-{}", root_.filename().string(), sha256_hex(root_.string()).substr(0, 8)) /
                       fmt::format("{}.txt", name_of(part));
    if (fs::is_regular_file(place)) return place;
    if (const auto folder = folder_of(part); !folder.empty()) return write_list(folder, place);
    return fail(fmt::format("{}: neither {} nor a folder {}", root_.string(), own.filename().string(), name_of(part)),
                folder_hint, Exit::usage);
  }

  Result<fs::path> write_list(const fs::path& folder, const fs::path& place) const {
    const auto found = STRATA_TRY(look_into(folder));
    std::error_code ec;
    for (const auto& image : found.images)
      if (image.find_first_of("\r\n") != std::string::npos)
        return fail(fmt::format("{}: '{}' has a line end in its name, and a list has an image a line", folder.string(),
                                escape::one_line(image)),
                    "rename it");
    fs::create_directories(place.parent_path(), ec);
    std::string lines;
    for (const auto& image : found.images) lines += image + '\n';
    if (!write_whole(place, lines))
      return fail(fmt::format("{}: cannot write the list of images", place.string()),
                  fmt::format("name a folder that you may write to with --data-dir, or write {}/train.txt and test.txt",
                              root_.string()));
    return place;
  }

  Result<std::vector<std::string>> read_image_list(const fs::path& list) const {
    const auto bytes = STRATA_TRY(read_bytes(list, most_list_bytes));
    std::vector<std::string> images;
    std::unordered_set<std::string> seen;
    std::size_t number = 0;
    for (auto& line : split({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, '\n')) {
      ++number;
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      const fs::path path(line);
      const bool leaves = path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end();
      if (leaves || class_of(path).empty())
        return fail(fmt::format("{}: line {}: '{}'; allowed: a path below the folder that ends in CLASS/IMAGE",
                                list.string(), number, escape::one_line(line.substr(0, 100))),
                    folder_hint);
      if (!seen.insert(line).second)
        return fail(fmt::format("{}: line {}: {} is listed twice", list.string(), number,
                                escape::one_line(line.substr(0, 100))),
                    "name each image once");
      images.push_back(std::move(line));
    }
    return images;
  }

  fs::path root_;
  ReadOptions options_;
  std::vector<std::string> classes_;  // sorted
  std::array<std::vector<std::string>, 2> images_;
};

}  // namespace

std::unique_ptr<Reader> make_folder_reader(const std::string& folder, const ReadOptions& options) {
  return std::make_unique<FolderReader>(folder, options);
}

}  // namespace strata::data
