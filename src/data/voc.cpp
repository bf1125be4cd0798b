// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <pugixml.hpp>
#include <unordered_set>

#include "common/escape.hpp"
#include "common/hash.hpp"
#include "common/text.hpp"
#include "data/catalogue.hpp"
#include "data/file_bytes.hpp"
#include "data/formats.hpp"
#include "data/reader.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* voc_hint = "get the files again: ./strata data fetch NAME";
constexpr std::size_t most_voc_text_bytes = std::size_t{16} << 20;

// Of a name that somebody else wrote, for an error.
std::string short_name(std::string_view name) {
  return escape::one_line(name.substr(0, 60));
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() < 200 && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '.';
  });
}

std::string_view as_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::vector<std::string>> parse_voc_objects(std::string_view xml, const std::string& where) {
  pugi::xml_document document;
  const auto parsed = document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed)
    return fail(fmt::format("{}: no readable XML: {} at byte {}", where, parsed.description(), parsed.offset),
                voc_hint);
  const auto root = document.child("annotation");
  if (!root) return fail(fmt::format("{}: no <annotation> in it", where), voc_hint);
  std::vector<std::string> names;
  for (const auto& object : root.children("object")) {
    std::string_view name = object.child("name").text().get();
    while (!name.empty() && static_cast<unsigned char>(name.front()) <= ' ') name.remove_prefix(1);
    while (!name.empty() && static_cast<unsigned char>(name.back()) <= ' ') name.remove_suffix(1);
    if (name.empty()) return fail(fmt::format("{}: object {} has no name", where, names.size()), voc_hint);
    names.emplace_back(name);
  }
  return names;
}

Result<std::vector<VocLine>> parse_voc_list(std::string_view text, bool with_values, const std::string& where) {
  std::vector<VocLine> lines;
  std::unordered_set<std::string> seen;
  std::size_t number = 0;
  for (auto& line : split(text, '\n')) {
    ++number;
    std::vector<std::string> words;
    std::replace(line.begin(), line.end(), '\r', ' ');
    for (auto& word : split(line, ' '))
      if (!word.empty()) words.push_back(std::move(word));
    if (words.empty()) continue;
    const auto refuse = [&](const std::string& what) {
      return fail(fmt::format("{}: line {}: {}", where, number, what), voc_hint);
    };
    if (words.size() != (with_values ? 2u : 1u))
      return refuse(fmt::format("{} words; allowed: {}", words.size(), with_values ? "image and -1, 0 or 1" : "image"));
    if (!is_plain_name(words[0])) return refuse(fmt::format("'{}' is no name of an image", short_name(words[0])));
    const auto value = with_values ? strata::number<int>(words[1]) : 0;
    if (!value || *value < -1 || *value > 1)
      return refuse(fmt::format("'{}'; allowed: -1, 0, 1", short_name(words[1])));
    if (!seen.insert(words[0]).second) return refuse(fmt::format("{} is listed twice", words[0]));
    lines.push_back({.image = words[0], .value = *value});
  }
  return lines;
}

namespace {

class VocReader : public Reader {
 public:
  VocReader(std::string set, ReadOptions options)
      : set_(std::move(set)), options_(std::move(options)), first_(set_.ends_with("-first")) {}

  Result<std::vector<SourceFiles>> sources() const override {
    std::vector<SourceFiles> out;
    SourceFiles photos{.name = below("JPEGImages").string(), .files = {}};
    SourceFiles annotations{.name = below("Annotations").string(), .files = {}};
    for (const Part part : both_parts) {
      const auto lines = STRATA_TRY(read_list(list_of(part), false));
      for (const auto& line : lines) {
        photos.files.push_back(photo_of(line.image));
        annotations.files.push_back(annotation_of(line.image));
      }
      out.push_back({.name = fs::relative(list_of(part), options_.data_dir).string(), .files = {list_of(part)}});
    }
    if (first_) {
      out.push_back(std::move(annotations));
    } else {
      SourceFiles lists{.name = below("ImageSets/Main/CLASS_SPLIT.txt").string(), .files = {}};
      for (const auto& name : find_entry(set_)->classes)
        for (const Part part : both_parts) lists.files.push_back(class_list_of(name, part));
      for (const auto& list : lists.files)
        if (!fs::is_regular_file(list)) return missing_files(set_, {list.string()});
      out.push_back(std::move(lists));
    }
    out.push_back(std::move(photos));
    return out;
  }

  Result<Description> load() override {
    const auto& entry = *find_entry(set_);
    Description about{.classes = entry.classes,
                      .shape = {3, options_.size, options_.size},
                      .kind = first_ ? Targets::one_class : Targets::several_classes};
    for (const Part part : both_parts) {
      const auto path = list_of(part);
      const auto lines = STRATA_TRY(read_list(path, false));
      auto& loaded = parts_[index_of(part)];
      for (const auto& line : lines) loaded.images.push_back(line.image);
      STRATA_TRY(check_count(entry.count[index_of(part)], lines.size(), options_.partial, path.string()));
      about.count[index_of(part)] = lines.size();
      const auto hash = STRATA_TRY(sha256_of_file(path));
      about.list_sha256[index_of(part)] = hash;
      if (first_) continue;
      STRATA_TRY(load_targets(part));
    }
    return about;
  }

  Result<void> read(Part part, std::size_t i, std::span<std::uint8_t> image, LabelPlace label) const override {
    const auto& loaded = parts_[index_of(part)];
    if (first_) {
      *label.label = STRATA_TRY(first_class(annotation_of(loaded.images[i])));
    } else {
      std::copy_n(loaded.targets.begin() + static_cast<std::ptrdiff_t>(i * label.targets.size()), label.targets.size(),
                  label.targets.begin());
    }
    return read_photo(photo_of(loaded.images[i]), options_, image);
  }

 private:
  struct Loaded {
    std::vector<std::string> images;
    std::vector<std::uint8_t> targets;
  };

  fs::path below(const char* what) const { return fs::path(find_entry(set_)->folder) / what; }
  fs::path list_folder() const { return options_.data_dir / below("ImageSets/Main"); }
  // The test images of 2012 have no labels that are public: its validation images are tested on.
  std::string split_of(Part part) const {
    if (set_.starts_with("voc2007")) return part == Part::train ? "trainval" : "test";
    return part == Part::train ? "train" : "val";
  }
  fs::path list_of(Part part) const { return list_folder() / (split_of(part) + ".txt"); }
  fs::path class_list_of(const std::string& name, Part part) const {
    return list_folder() / fmt::format("{}_{}.txt", name, split_of(part));
  }
  fs::path photo_of(const std::string& image) const {
    return options_.data_dir / below("JPEGImages") / (image + ".jpg");
  }
  fs::path annotation_of(const std::string& image) const {
    return options_.data_dir / below("Annotations") / (image + ".xml");
  }

  Result<std::vector<VocLine>> read_list(const fs::path& path, bool with_values) const {
    if (!fs::is_regular_file(path)) return missing_files(set_, {path.string()});
    const auto bytes = STRATA_TRY(read_bytes(path, most_voc_text_bytes));
    return parse_voc_list(as_text(bytes), with_values, path.string());
  }

  // The official labels: in each class's list -1 none, 0 only difficult ones, 1 there.
  Result<void> load_targets(Part part) {
    const auto& classes = find_entry(set_)->classes;
    auto& loaded = parts_[index_of(part)];
    loaded.targets.resize(loaded.images.size() * classes.size());
    for (std::size_t c = 0; c < classes.size(); ++c) {
      const auto path = class_list_of(classes[c], part);
      const auto lines = STRATA_TRY(read_list(path, true));
      for (std::size_t i = 0; i < std::max(lines.size(), loaded.images.size()); ++i) {
        if (i >= lines.size() || i >= loaded.images.size() || lines[i].image != loaded.images[i])
          return fail(fmt::format("{}: image {} is {}; {} has {}", path.string(), i,
                                  i < lines.size() ? lines[i].image : "missing", list_of(part).string(),
                                  i < loaded.images.size() ? loaded.images[i] : "none"),
                      voc_hint);
        const int value = lines[i].value;
        loaded.targets[i * classes.size() + c] = value == 1 ? 1 : value == 0 ? difficult_target : 0;
      }
    }
    return {};
  }

  Result<std::int64_t> first_class(const fs::path& path) const {
    const auto bytes = STRATA_TRY(read_bytes(path, most_voc_text_bytes));
    const auto objects = STRATA_TRY(parse_voc_objects(as_text(bytes), path.string()));
    if (objects.empty()) return fail(fmt::format("{}: no object in it, and so no class", path.string()), voc_hint);
    const auto& classes = find_entry(set_)->classes;
    const auto it = std::find(classes.begin(), classes.end(), objects.front());
    if (it == classes.end())
      return fail(fmt::format("{}: the first object is '{}'; allowed: {}", path.string(), short_name(objects.front()),
                              fmt::join(classes, ", ")),
                  voc_hint);
    return it - classes.begin();
  }

  std::string set_;
  ReadOptions options_;
  bool first_;
  std::array<Loaded, 2> parts_;
};

}  // namespace

std::unique_ptr<Reader> make_voc_reader(const std::string& set, const ReadOptions& options) {
  return std::make_unique<VocReader>(set, options);
}

}  // namespace strata::data
