// SPDX-License-Identifier: Apache-2.0
// `strata cache list|prune|limit`: what networks were captured as, and what levels made of them.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/file_lock.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "core/bundle_info.hpp"
#include "measure/measuring_mark.hpp"
#include "plan/references.hpp"
#include "report/format.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

struct CacheArguments {
  std::string format = "text";
  double days = 0;         // prune what was not used for so long
  std::uint64_t most = 0;  // bytes that the cache may keep
};

using FileId = std::pair<dev_t, ino_t>;  // of all links to one file

struct CacheEntry {
  std::string kind,
      name;  // "capture" and its case; "network" and its model; "artefact" and its level; "data" or "images" and the
             // set
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

std::string in_words(std::uintmax_t bytes) {
  return report::size(static_cast<double>(bytes));
}

// Error: there is no cache's place, or it is not the user's own.
Result<fs::path> own_cache() {
  const auto cache = installation().cache;
  std::error_code ec;
  if (!cache.empty() && !fs::exists(cache, ec)) return cache;  // nothing was captured yet
  STRATA_TRY(private_folder(cache, "set STRATA_CACHE to a folder of your own"));
  return cache;
}

int list_cache(const CacheArguments& a) {
  const auto format = format_option(a.format);
  if (!format) return print_error(format.error());
  const auto cache = own_cache();
  if (!cache) return print_error(cache.error());
  const auto entries = cache_entries(*cache);
  const Content content(entries);
  std::vector<report::Cells> rows;
  for (const auto& entry : entries)
    rows.push_back({entry.kind, entry.name, in_words(content.own_bytes(entry)), day_of(entry.used),
                    entry.folder.filename().string()});
  answer(report::table({"kind", "what", "size", "last used (UTC)", "folder"}, rows, *format));
  tell(fmt::format("{} folders in {}, {} in all\n", entries.size(), cache->string(), in_words(content.bytes())));
  return 0;
}

// Removes folders for which `is_next` holds, the one that was not used for longest first. `is_next` sees what the cache
// holds by then.
int remove_while(const std::function<bool(const CacheEntry&, const Content&)>& is_next) {
  const auto cache = own_cache();
  if (!cache) return print_error(cache.error());
  const measure::MeasuringMark mark(store::Store::default_path().parent_path() / "measuring");
  if (mark.other())
    return print_error({fmt::format("a strata run is measuring{}, and needs what lies in the cache",
                                    *mark.other() > 0 ? fmt::format(" (pid {})", *mark.other()) : ""),
                        "wait until it is done"});
  if (!hold_folder(*cache, true))
    return print_error({"another strata command uses what lies in the cache", "wait until it is done"});
  const auto entries = cache_entries(*cache);
  Content content(entries);
  std::size_t removed = 0;
  std::uintmax_t freed = 0;
  std::string failure;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (!is_next(*entry, content)) break;
    std::error_code ec;
    fs::remove_all(entry->folder, ec);
    if (!ec && !entry->references.empty()) fs::remove_all(entry->references, ec);
    if (ec) {
      failure = fmt::format("cannot remove {}: {}", entry->folder.string(), ec.message());
      continue;
    }
    freed += content.remove(*entry);
    ++removed;
  }
  answer(fmt::format("removed {} folders of {}, {}; {} are left\n", removed, cache->string(), in_words(freed),
                     in_words(content.bytes())));
  return failure.empty() ? 0 : print_error({failure, "remove it by hand"});
}

int prune_cache(const CacheArguments& a) {
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::duration_cast<fs::file_time_type::duration>(
                                                             std::chrono::duration<double>(a.days * 86400));
  return remove_while([&](const CacheEntry& entry, const Content&) { return !(a.days > 0 && entry.used > oldest); });
}

int limit_cache(const CacheArguments& a) {
  return remove_while([&](const CacheEntry&, const Content& content) { return content.bytes() > a.most; });
}

}  // namespace

void add_cache(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("cache", "the sizes of captured networks and artefacts of levels, and removing them");
  verb->require_subcommand(1);
  auto a = std::make_shared<CacheArguments>();
  auto* list = verb->add_subcommand("list", "every capture, network and artefact with its size, the last used first");
  format_choice(list->add_option("--format", a->format, "of the list"));
  list->footer("Exit codes: 0 shown; 1 the cache cannot be read; 2 wrong usage.");
  list->callback([a, &exit_code] { exit_code = list_cache(*a); });
  const char* codes = "Exit codes: 0 removed; 1 something could not be removed, or a run is measuring; 2 wrong usage.";
  auto* prune = verb->add_subcommand("prune", "remove them; what is needed again is made again");
  positive(prune->add_option("--older-than", a->days, "only what was not used for so many days (default: all)"))
      ->type_name("DAYS");
  prune->footer(codes);
  prune->callback([a, &exit_code] { exit_code = prune_cache(*a); });
  auto* limit = verb->add_subcommand("limit", "remove what was not used for longest, until the rest is no larger");
  limit->add_option("size", a->most, "as 20GB or 500MiB")
      ->required()
      ->type_name("SIZE")
      ->transform(CLI::Validator(
          [](const std::string& text) {
            return text.starts_with('-') ? "SIZE is negative; write it as 20GB or 500MiB" : std::string();
          },
          ""))
      ->transform(CLI::AsSizeValue(true));
  limit->footer(codes);
  limit->callback([a, &exit_code] { exit_code = limit_cache(*a); });
}

}  // namespace strata::cli
