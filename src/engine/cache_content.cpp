// SPDX-License-Identifier: Apache-2.0
#include "engine/cache_content.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/file_lock.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "core/bundle_info.hpp"
#include "measure/measuring_mark.hpp"
#include "plan/references.hpp"
#include "store/store.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

using FileId = std::pair<dev_t, ino_t>;  // of all links to one file

struct CacheEntry {
  std::string kind, name;
  fs::path folder;
  fs::path references;                     // of a capture, which lie apart (plan/references.hpp); else empty
  std::map<FileId, std::uintmax_t> files;  // with their bytes
  fs::file_time_type used;
};

std::map<FileId, std::uintmax_t> files_below(const fs::path& folder) {
  std::map<FileId, std::uintmax_t> files;
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ec)) {
    struct stat about {};
    if (::lstat(entry.path().c_str(), &about) == 0 && S_ISREG(about.st_mode))
      files[{about.st_dev, about.st_ino}] = static_cast<std::uintmax_t>(about.st_size);
  }
  return files;
}

// The time of the file that says so (plan/states.hpp; docs/bundle.md, Networks), or of the folder.
fs::file_time_type used_last(const fs::path& folder) {
  for (const char* stamp : {"bundle.json", "network.json", "data.safetensors"}) {
    std::error_code ec;
    if (const auto time = fs::last_write_time(folder / stamp, ec); !ec) return time;
  }
  std::error_code ec;
  return fs::last_write_time(folder, ec);
}

// "eager" of "eager-67ff2877549ce2884c42d68b-5abd0f177fad-23b6a200": the key, the code's hash and the versions' follow.
std::string level_of(const std::string& folder) {
  auto name = folder;
  for (int part = 0; part < 3; ++part)
    if (const auto dash = name.rfind('-'); dash != std::string::npos) name.resize(dash);
  return name;
}

std::string case_of_capture(const fs::path& folder) {
  const auto question = core::case_in(folder);
  return question ? question->id() : "incomplete";
}

std::string model_of_network(const fs::path& folder) {
  std::ifstream in(folder / "network.json");
  const auto about = nlohmann::json::parse(in, nullptr, false);
  const auto model = outside::text_or(about, "model");
  return model.empty() ? "incomplete" : model;
}

// "Net" of the file Net.py in it (python/stratabench/live.py).
std::string name_of_live(const fs::path& folder) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.path().extension() == ".py") return entry.path().stem();
  return "incomplete";
}

// Folders alone: a file or a link below the cache is none of strata's.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    std::error_code gone;
    if (!entry.is_symlink(gone) && entry.is_directory(gone)) result.push_back(entry.path());
  }
  return result;
}

// A network's weights are in use as long as a capture that links to them is.
void use_with_captures(std::vector<CacheEntry>& entries) {
  std::map<FileId, fs::file_time_type> used;
  for (const auto& entry : entries)
    if (entry.kind == "capture")
      for (const auto& [file, bytes] : entry.files) {
        const auto [at, added] = used.try_emplace(file, entry.used);
        if (!added) at->second = std::max(at->second, entry.used);
      }
  for (auto& entry : entries)
    if (entry.kind == "network")
      for (const auto& [file, bytes] : entry.files)
        if (const auto it = used.find(file); it != used.end()) entry.used = std::max(entry.used, it->second);
}

// The last used first.
std::vector<CacheEntry> cache_entries(const fs::path& cache) {
  std::vector<CacheEntry> all;
  const auto add = [&](const char* kind, std::string name, const fs::path& folder) {
    all.push_back({.kind = kind,
                   .name = std::move(name),
                   .folder = folder,
                   .references = {},
                   .files = files_below(folder),
                   .used = used_last(folder)});
  };
  for (const auto& folder : folders_in(cache / "bundles")) {
    add("capture", case_of_capture(folder), folder);
    all.back().references = plan::references_of(folder);
    all.back().files.merge(files_below(all.back().references));
  }
  for (const auto& folder : folders_in(cache / "artefacts")) add("artefact", level_of(folder.filename()), folder);
  for (const auto& folder : folders_in(cache / "data")) add("data", folder.filename(), folder);
  for (const auto& folder : folders_in(cache / "live")) add("live", name_of_live(folder), folder);
  for (const char* kind : {"programs", "packs"})  // of the package, by driver; of packs, by pack
    for (const auto& made : folders_in(cache / kind))
      for (const auto& folder : folders_in(made)) add(kind, made.filename(), folder);
  for (const auto& state : folders_in(cache / "images"))  // of data sets, as inputs (data/image_files.hpp)
    for (const auto& folder : folders_in(state)) add("images", folder.filename(), folder);
  for (const auto& folder : folders_in(cache / "networks")) {
    if (!folder.filename().string().starts_with("file-")) {
      add("network", model_of_network(folder), folder);
      continue;
    }
    for (const auto& inner : folders_in(folder)) add("network", model_of_network(inner), inner);  // of a model file
  }
  use_with_captures(all);
  // a network behind its captures, so that it is removed with the last of them
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.used != b.used ? a.used > b.used : (a.kind != "network" && b.kind == "network");
  });
  return all;
}

std::string day_of(fs::file_time_type time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                           time.time_since_epoch() - fs::file_time_type::clock::now().time_since_epoch())
                           .count() +
                       std::time(nullptr);
  const std::time_t at = seconds;
  std::tm parts{};
  ::gmtime_r(&at, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts)};
}

// Each file once, however many captures link to it.
class Content {
 public:
  explicit Content(const std::vector<CacheEntry>& entries) {
    for (const auto& entry : entries)
      for (const auto& [file, bytes] : entry.files)
        if (links_[file]++ == 0) bytes_ += bytes;
  }
  // What is freed with a folder.
  std::uintmax_t remove(const CacheEntry& entry) {
    std::uintmax_t freed = 0;
    for (const auto& [file, bytes] : entry.files)
      if (--links_[file] == 0) freed += bytes;
    bytes_ -= freed;
    return freed;
  }
  std::uintmax_t bytes() const { return bytes_; }
  // Of an entry's own; what networks share is theirs.
  std::uintmax_t own_bytes(const CacheEntry& entry) const {
    std::uintmax_t own = 0;
    for (const auto& [file, bytes] : entry.files)
      if (entry.kind == "network" || links_.at(file) == 1) own += bytes;
    return own;
  }

 private:
  std::map<FileId, int> links_;
  std::uintmax_t bytes_ = 0;
};

// Error: there is no cache's place, or it is not the user's own.
Result<fs::path> own_cache() {
  const auto cache = installation().cache;
  std::error_code ec;
  if (!cache.empty() && !fs::exists(cache, ec)) return cache;  // nothing was captured yet
  STRATA_TRY(private_folder(cache, "set STRATA_CACHE to a folder of your own"));
  return cache;
}

// Removes folders for which `is_next` holds, the one that was not used for longest first. `is_next` sees what the cache
// holds by then.
Result<RemovedEntries> remove_while(const std::function<bool(const CacheEntry&, const Content&)>& is_next) {
  RemovedEntries removed{.cache = STRATA_TRY(own_cache()), .failure = {}};
  const measure::MeasuringMark mark(store::Store::default_path().parent_path() / "measuring");
  if (mark.other())
    return fail(fmt::format("a strata run is measuring{}, and needs what lies in the cache",
                            *mark.other() > 0 ? fmt::format(" (pid {})", *mark.other()) : ""),
                "wait until it is done");
  if (!hold_folder(removed.cache, true))
    return fail("another strata command uses what lies in the cache", "wait until it is done");
  const auto entries = cache_entries(removed.cache);
  Content content(entries);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (!is_next(*entry, content)) break;
    std::error_code ec;
    fs::remove_all(entry->folder, ec);
    if (!ec && !entry->references.empty()) fs::remove_all(entry->references, ec);
    if (ec) {
      removed.failure = fmt::format("cannot remove {}: {}", entry->folder.string(), ec.message());
      continue;
    }
    removed.freed += content.remove(*entry);
    ++removed.folders;
  }
  removed.left = content.bytes();
  return removed;
}

}  // namespace

Result<ListedCache> list_cache() {
  ListedCache listed{.cache = STRATA_TRY(own_cache()), .entries = {}};
  const auto entries = cache_entries(listed.cache);
  const Content content(entries);
  for (const auto& entry : entries)
    listed.entries.push_back({.kind = entry.kind,
                              .name = entry.name,
                              .folder = entry.folder.filename().string(),
                              .last_used = day_of(entry.used),
                              .bytes = content.own_bytes(entry)});
  listed.bytes = content.bytes();
  return listed;
}

Result<RemovedEntries> prune_cache(double days) {
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::duration_cast<fs::file_time_type::duration>(
                                                             std::chrono::duration<double>(days * 86400));
  return remove_while([&](const CacheEntry& entry, const Content&) { return !(days > 0 && entry.used > oldest); });
}

Result<RemovedEntries> limit_cache(std::uint64_t most) {
  return remove_while([&](const CacheEntry&, const Content& content) { return content.bytes() > most; });
}

}  // namespace strata::engine
