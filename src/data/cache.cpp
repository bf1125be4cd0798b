// SPDX-License-Identifier: Apache-2.0
#include "data/cache.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "common/file_lock.hpp"
#include "common/hash.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "common/safetensors.hpp"
#include "data/cache_file.hpp"
#include "data/catalogue.hpp"
#include "data/parallel.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t checksum_block_bytes = std::size_t{8} << 20;
constexpr std::uint64_t most_header_bytes = std::uint64_t{64} << 20;

// The metadata of a file that SafeTensors accepted.
Result<nlohmann::json> read_metadata(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!in || length > most_header_bytes) return fail(fmt::format("{}: no header", file.string()));
  std::string text(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  if (!in) return fail(fmt::format("{}: no header", file.string()));
  const auto header = STRATA_TRY(outside::parse(text, file.string()));
  return outside::parse(outside::text_or(outside::field(header, "__metadata__"), cache_metadata_key), file.string());
}

// Whether the sources are still those that the cache was made from; says which is not.
Result<void> check_sources(const nlohmann::json& stored, const std::vector<SourceFiles>& sources) {
  if (!stored.is_array() || stored.size() != sources.size()) return fail("its sources are others");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (outside::text_or(stored[i], "name") != sources[i].name ||
        outside::text_or(stored[i], "stamp") != stamp_of(sources[i]))
      return fail(fmt::format("{} changed since", sources[i].name));
  }
  return {};
}

void read_facts(const nlohmann::json& about, CacheFacts& facts) {
  const auto& cost = outside::field(about, "cost");
  facts.hash_s = outside::number_or(cost, "hash_s");
  facts.load_s = outside::number_or(cost, "load_s");
  facts.read_s = outside::number_or(cost, "read_s");
  facts.read_cpu_s = outside::number_or(cost, "read_cpu_s");
  facts.write_s = outside::number_or(cost, "write_s");
  facts.threads = static_cast<int>(outside::integer_or(cost, "threads"));
  facts.skipped = static_cast<std::size_t>(outside::integer_or(about, "skipped"));
  facts.sha256 = outside::text_or(about, "sha256");
  for (const auto& why : outside::field(about, "skipped_why"))
    if (why.is_string()) facts.skipped_why.push_back(why.get<std::string>());
  for (const auto& words : outside::field(about, "left_out"))
    if (words.is_string()) facts.left_out.push_back(words.get<std::string>());
  for (const auto& source : outside::field(about, "sources"))
    facts.sources.push_back({.name = outside::text_or(source, "name"),
                             .sha256 = outside::text_or(source, "sha256"),
                             .files = static_cast<std::size_t>(outside::integer_or(source, "files")),
                             .bytes = static_cast<std::uint64_t>(outside::integer_or(source, "bytes"))});
}

// The spans of one part; error: the file lacks a tensor, or it is of another type or size.
Result<void> read_split(const SafeTensors& file, Part part, Dataset& set) {
  Split& split = part == Part::train ? set.train : set.test;
  const auto* images = file.find(images_name(part));
  const auto* labels = file.find(labels_name(part, set.kind));
  if (!images || !labels || images->dtype != "U8" || images->shape.size() != 4 || labels->shape.empty() ||
      labels->shape[0] != images->shape[0] || images->shape[0] == 0)
    return fail(fmt::format("no {} images with labels in it", name_of(part)));
  set.shape = {images->shape[1], images->shape[2], images->shape[3]};
  split.count = static_cast<std::size_t>(images->shape[0]);
  split.images = {reinterpret_cast<const std::uint8_t*>(images->data), images->bytes};
  if (labels->bytes != split.count * label_bytes(set.kind, set.classes.size()) ||
      labels->dtype != (set.kind == Targets::one_class ? "I64" : "U8"))
    return fail(fmt::format("its {} labels have another type or size", name_of(part)));
  if (set.kind == Targets::several_classes) {
    split.targets = {reinterpret_cast<const std::uint8_t*>(labels->data), labels->bytes};
    return {};
  }
  if (reinterpret_cast<std::uintptr_t>(labels->data) % alignof(std::int64_t) != 0) return fail("labels not aligned");
  split.labels = {reinterpret_cast<const std::int64_t*>(labels->data), split.count};
  for (const auto label : split.labels)
    if (label < 0 || label >= static_cast<std::int64_t>(set.classes.size())) return fail("a label out of range");
  return {};
}

// An error says why the cache cannot be used as it is, and is no more than a reason to make it again.
Result<CachedDataset> read_cache(const fs::path& place, const std::vector<SourceFiles>& sources,
                                 const OpenOptions& options) {
  auto file = STRATA_TRY(SafeTensors::map(place));
  const auto about = STRATA_TRY(read_metadata(place));
  if (outside::integer_or(about, "format") != cache_format) return fail("it is of another version");
  if (outside::field(about, "options") != options_json(options)) return fail("it was read with other options");
  if (outside::flag_or(about, "skip_bad", false) && !options.skip_bad && outside::integer_or(about, "skipped") > 0)
    return fail("it leaves out records that could not be read");
  STRATA_TRY(check_sources(outside::field(about, "sources"), sources));
  CachedDataset opened;
  auto& set = opened.set;
  set.name = outside::text_or(about, "name");
  set.kind = outside::text_or(about, "kind") == "one_class" ? Targets::one_class : Targets::several_classes;
  set.highest_value = static_cast<int>(outside::integer_or(about, "highest_value", 255));
  for (const auto& name : outside::field(about, "classes"))
    if (name.is_string()) set.classes.push_back(name.get<std::string>());
  for (const Part part : both_parts) STRATA_TRY(read_split(file, part, set));
  const auto& lists = outside::field(about, "lists");
  set.train.list_sha256 = outside::text_or(lists, "train");
  set.test.list_sha256 = outside::text_or(lists, "test");
  read_facts(about, opened.facts);
  const auto* first = file.find(labels_name(Part::train, set.kind));
  std::error_code ec;
  opened.facts.file = place;
  opened.facts.bytes = fs::file_size(place, ec);
  std::size_t data_bytes = 0;
  for (const auto& name : file.names()) data_bytes += file.find(name)->bytes;
  if (checksum({first->data, data_bytes}, options.threads) != opened.facts.sha256)
    return fail("its bytes are not those that were written");
  set.memory = std::make_shared<SafeTensors>(std::move(file));
  return opened;
}

}  // namespace

std::string stamp_of(const SourceFiles& source) {
  std::string lines;
  for (const auto& file : source.files) {
    struct stat about {};
    if (::stat(file.c_str(), &about) != 0) {  // an error of its record, not of the set
      lines += fmt::format("{} missing\n", file.filename().string());
      continue;
    }
    lines += fmt::format("{} {} {}.{:09}\n", file.filename().string(), about.st_size, about.st_mtim.tv_sec,
                         about.st_mtim.tv_nsec);
  }
  return sha256_hex(lines);
}

std::string content_sha256(const CachedDataset& opened) {
  if (opened.facts.sha256.empty()) return {};
  auto all = opened.facts.sha256;
  for (const auto& name : opened.set.classes) all += '\n' + name;
  return sha256_hex(all);
}

std::string set_name(const std::string& name) {
  if (!is_folder(name)) return name;
  std::error_code ec;
  const auto folder = fs::weakly_canonical(name, ec);
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

std::string checksum(std::span<const std::byte> bytes, int threads) {
  const auto blocks = (bytes.size() + checksum_block_bytes - 1) / checksum_block_bytes;
  std::vector<std::string> hashes(blocks);
  const auto hash = [&](std::size_t i) {
    const auto block = bytes.subspan(i * checksum_block_bytes)
                           .first(std::min(checksum_block_bytes, bytes.size() - i * checksum_block_bytes));
    hashes[i] = sha256_hex({reinterpret_cast<const char*>(block.data()), block.size()});
  };
  (void)for_each_in_parallel(blocks, threads, hash);  // interrupted: another checksum, and so no data
  std::string together;
  for (const auto& block_hash : hashes) together += block_hash;
  return sha256_hex(together);
}

nlohmann::json options_json(const ReadOptions& options) {
  return {{"size", options.size},
          {"decode", options.decode == Decode::full ? "full" : "scaled"},
          {"partial", options.partial}};
}

bool is_folder(const std::string& name) {
  return name.find('/') != std::string::npos;
}

fs::path cache_file(const std::string& name, const OpenOptions& options) {
  std::error_code ec;
  const auto* entry = find_entry(name);
  auto folder = fs::weakly_canonical(entry ? options.data_dir / entry->folder : fs::path(name), ec);
  if (!folder.has_filename()) folder = folder.parent_path();
  auto key = entry ? name : folder.filename().string();
  if (entry == nullptr || entry->shape.height == 0) key += fmt::format("-{}", options.size);
  if (options.decode == Decode::scaled) key += "-scaled";
  if (options.partial) key += "-partial";
  key += "-" + sha256_hex(folder.string()).substr(0, 8);
  return options.cache_dir / "data" / key / "data.safetensors";
}

Result<CachedDataset> open_dataset(const std::string& name, const OpenOptions& requested) {
  if (name == "digits") return CachedDataset{.set = digits(), .facts = {}};
  auto options = requested;
  if (const auto* entry = find_entry(name); entry != nullptr && entry->shape.height > 0) {
    options.size = entry->shape.height;  // which has no say there
    options.decode = Decode::full;
  }
  auto reader = STRATA_TRY(make_reader(name, options));
  const auto sources = STRATA_TRY(reader->sources());
  const auto place = cache_file(name, options);
  if (!options.make && !there_is(place))
    return fail(fmt::format("{} was not read yet", name), fmt::format("./strata data verify {}", name));
  STRATA_TRY(private_folder(options.cache_dir, "set STRATA_CACHE to a folder of your own"));
  static const bool held = hold_folder(options.cache_dir);  // `cache prune` leaves it alone
  if (!held) return fail("another strata removes folders from the cache", "run the command again");
  std::error_code ec;
  fs::create_directories(place.parent_path(), ec);
  if (ec)
    return fail(fmt::format("{}: cannot make this folder: {}", place.parent_path().string(), ec.message()),
                "name another place for the cache: STRATA_CACHE", Exit::environment);
  const FileLock lock(place.parent_path() / "lock", [&] {
    if (options.note) options.note(fmt::format("waiting for another strata that reads {}", name));
  });
  if (!options.again && there_is(place)) {
    auto opened = read_cache(place, sources, options);
    if (opened || !options.make) return opened;
    if (interrupted().load()) return fail("interrupted");
    if (options.note) options.note(fmt::format("{} is read again: {}", name, opened.error().what));
  }
  STRATA_TRY(make_cache(set_name(name), *reader, sources, place, options));
  auto opened = read_cache(place, sources, options);
  if (opened) opened->facts.made_now = true;
  return opened;
}

Result<std::unique_ptr<Reader>> make_reader(const std::string& name, const ReadOptions& options) {
  if (is_folder(name)) return make_folder_reader(name, options);
  if (name == "digits") return fail("digits are part of strata, and read from no file", "", Exit::usage);
  if (find_entry(name) == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : catalogue()) names.push_back(known.name);
    auto error = unknown_value("NAME", name, names);
    error.facts.where = "--dataset";
    error.hint += error.hint.empty() ? "" : "; ";
    error.hint += "a folder of images is named with a slash: ./" + name;
    return tl::unexpected(error);
  }
  if (name == "mnist") return make_idx_reader(name, options);
  if (name.starts_with("cifar")) return make_cifar_reader(name, options);
  if (name.starts_with("voc")) return make_voc_reader(name, options);
  return make_stl_reader(name, options);
}

}  // namespace strata::data
