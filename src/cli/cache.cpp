// SPDX-License-Identifier: Apache-2.0
// `strata cache list|clear`: what networks were captured as, and what levels made of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>

#include "cli/option.hpp"
#include "cli/say.hpp"
#include "cli/verbs.hpp"
#include "common/places.hpp"
#include "core/bundle_info.hpp"
#include "measure/measuring_mark.hpp"
#include "report/format.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

struct CacheArguments {
  std::string format = "text";
  double days = 0;  // clear what was not used for so long
};

struct CacheEntry {
  std::string kind, name;  // "capture" and its case; "artefact" and its level
  fs::path folder;
  std::uintmax_t bytes = 0;
  fs::file_time_type used;
};

std::uintmax_t bytes_below(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ec)) {
    std::error_code gone;
    if (entry.is_regular_file(gone) && !entry.is_symlink(gone)) bytes += entry.file_size(gone);
  }
  return bytes;
}

// The time of the file that says so (plan/states.hpp), or of the folder.
fs::file_time_type used_last(const fs::path& folder) {
  std::error_code ec;
  const auto stamp = fs::last_write_time(folder / "bundle.json", ec);
  return ec ? fs::last_write_time(folder, ec) : stamp;
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

// Folders alone: a file or a link below the cache is none of strata's.
std::vector<CacheEntry> cache_entries(const fs::path& cache) {
  std::vector<CacheEntry> all;
  for (const bool capture : {true, false}) {
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(cache / (capture ? "bundles" : "artefacts"), ec)) {
      std::error_code gone;
      if (entry.is_symlink(gone) || !entry.is_directory(gone)) continue;
      const auto& folder = entry.path();
      all.push_back({capture ? "capture" : "artefact",
                     capture ? case_of_capture(folder) : level_of(folder.filename().string()), folder,
                     bytes_below(folder), used_last(folder)});
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.used > b.used; });
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

std::string total_of(const std::vector<CacheEntry>& entries) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : entries) bytes += entry.bytes;
  return report::size(static_cast<double>(bytes));
}

// Error: there is no cache's place, or it is not the user's own.
Result<fs::path> own_cache() {
  const auto cache = installation().cache;
  std::error_code ec;
  if (!cache.empty() && !fs::exists(cache, ec)) return cache;  // nothing was captured yet
  if (auto own = private_folder(cache, "set STRATA_CACHE to a folder of your own"); !own)
    return tl::unexpected(own.error());
  return cache;
}

int list_cache(const CacheArguments& a) {
  const auto format = format_option(a.format);
  if (!format) return complain(format.error());
  const auto cache = own_cache();
  if (!cache) return complain(cache.error());
  const auto entries = cache_entries(*cache);
  std::vector<report::Cells> rows;
  for (const auto& entry : entries)
    rows.push_back({entry.kind, entry.name, report::size(static_cast<double>(entry.bytes)), day_of(entry.used),
                    entry.folder.filename().string()});
  answer(report::table({"kind", "what", "size", "last used (UTC)", "folder"}, rows, *format));
  tell(fmt::format("{} folders in {}, {} in all\n", entries.size(), cache->string(), total_of(entries)));
  return 0;
}

int clear_cache(const CacheArguments& a) {
  const auto cache = own_cache();
  if (!cache) return complain(cache.error());
  const measure::MeasuringMark mark(store::Store::default_path().parent_path() / "measuring");
  if (mark.other())
    return complain({fmt::format("a strata run is measuring{}, and needs what lies in the cache",
                                 *mark.other() > 0 ? fmt::format(" (pid {})", *mark.other()) : ""),
                     "wait until it is done"});
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::duration_cast<fs::file_time_type::duration>(
                                                             std::chrono::duration<double>(a.days * 86400));
  auto entries = cache_entries(*cache);
  std::erase_if(entries, [&](const CacheEntry& entry) { return a.days > 0 && entry.used > oldest; });
  std::vector<CacheEntry> removed;
  std::string failure;
  for (auto& entry : entries) {
    std::error_code ec;
    fs::remove_all(entry.folder, ec);
    if (ec)
      failure = fmt::format("cannot remove {}: {}", entry.folder.string(), ec.message());
    else
      removed.push_back(std::move(entry));
  }
  answer(fmt::format("removed {} folders of {}, {}\n", removed.size(), cache->string(), total_of(removed)));
  return failure.empty() ? 0 : complain({failure, "remove it by hand"});
}

}  // namespace

void add_cache(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("cache", "what captured networks and artefacts of levels take, and removing them");
  verb->require_subcommand(1);
  auto a = std::make_shared<CacheArguments>();
  auto* list = verb->add_subcommand("list", "every capture and artefact with its size, the last used first");
  format_choice(list->add_option("--format", a->format, "of the list"));
  list->footer("Exit codes: 0 shown; 1 the cache cannot be read; 2 wrong usage.");
  list->callback([a, &exit_code] { exit_code = list_cache(*a); });
  auto* clear = verb->add_subcommand("clear", "remove them; what is needed again is made again");
  positive(clear->add_option("--older-than", a->days, "only what was not used for so many days (default: all)"))
      ->type_name("DAYS");
  clear->footer("Exit codes: 0 removed; 1 something could not be removed, or a run is measuring; 2 wrong usage.");
  clear->callback([a, &exit_code] { exit_code = clear_cache(*a); });
}

}  // namespace strata::cli
