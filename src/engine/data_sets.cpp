// SPDX-License-Identifier: Apache-2.0
#include "engine/data_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "common/interrupt.hpp"
#include "common/places.hpp"
#include "data/fetch.hpp"
#include "report/contact_sheet.hpp"
#include "report/format.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
using requests::DataRequest;
namespace {

constexpr const char* no_home_hint = "name a folder: --data-dir DIR, or STRATA_DATA";

Result<data::OpenOptions> open_options(const DataRequest& r) {
  data::OpenOptions options;
  std::error_code ec;
  const auto folder = r.data_dir.empty() ? data::default_data_dir() : fs::path(r.data_dir);
  if (folder.empty()) return fail("there is no folder for data sets: HOME is not set", no_home_hint, Exit::usage);
  options.data_dir = fs::absolute(folder, ec);
  options.cache_dir = installation().cache;
  if (options.cache_dir.empty())
    return fail("there is no place for a cache: HOME is not set", "set STRATA_CACHE to a folder of your own",
                Exit::environment);
  options.size = r.size;
  options.decode = r.decode == "full" ? data::Decode::full : data::Decode::scaled;
  options.partial = r.partial;
  options.skip_bad = r.skip_bad;
  options.again = r.again;
  options.threads = r.threads > 0 ? r.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return options;
}

// An error of what was interrupted says so by its code.
template <class T>
Result<T> unless_interrupted(Result<T> result) {
  if (!result && interrupted().load()) result.error().exit = static_cast<Exit>(interrupt_exit_code());
  return result;
}

Result<data::CachedDataset> open_set(const std::string& name, data::OpenOptions options, EventSink& events) {
  options.status = [&](const std::string& doing, double seconds_left) {
    events.progress(doing, seconds_left, "reading");
  };
  options.note = [&](const std::string& note) { events.note(note); };
  return unless_interrupted(data::open_dataset(name, options));
}

// Whether files that are not packed hold less than the images as published.
bool is_part(const data::CatalogueEntry& entry, const std::vector<data::SourceFiles>& sources) {
  std::uint64_t bytes = 0;
  for (const auto& source : sources)
    for (const auto& file : source.files) {
      std::error_code ec;
      const auto size = fs::file_size(file, ec);
      if (file.extension() == ".gz" || ec) return false;
      bytes += size;
    }
  return bytes < (entry.count[0] + entry.count[1]) * entry.shape.bytes();
}

std::string state_of_set(const data::CatalogueEntry& entry, const data::OpenOptions& options) {
  if (entry.downloads.empty()) return "part of strata";
  const auto reader = data::make_reader(entry.name, options);
  const auto sources = reader ? (*reader)->sources() : tl::unexpected(reader.error());
  if (sources) {
    if (is_part(entry, *sources))
      return fmt::format(
          "here, a part of it: fewer images than published, which --partial takes; for all of them move its files "
          "away, "
          "then ./strata data fetch {}",
          entry.name);
    return there_is(data::cache_file(entry.name, options)) ? "read" : "here";
  }
  if (holds_files(options.data_dir / entry.folder)) {
    auto why = sources.error().what;
    const auto folder = options.data_dir.string() + "/";
    for (auto at = why.find(folder); at != std::string::npos; at = why.find(folder)) why.erase(at, folder.size());
    return fmt::format("in part: {}; ./strata data fetch {}", why, entry.name);
  }
  std::uint64_t bytes = 0;
  for (const auto& download : entry.downloads) bytes += download.bytes;
  return fmt::format("missing: {} to fetch", report::size(static_cast<double>(bytes)));
}

// That the set is read from; none where one is missing, or the set is part of strata.
std::vector<fs::path> files_of(const std::string& name, const data::OpenOptions& options) {
  std::vector<fs::path> files;
  const auto reader = data::make_reader(name, options);
  if (const auto sources = reader ? (*reader)->sources() : tl::unexpected(reader.error()))
    for (const auto& source : *sources) files.insert(files.end(), source.files.begin(), source.files.end());
  return files;
}

Json split_json(const data::Split& split) {
  return {{"images", split.count}, {"list_sha256", split.list_sha256}};
}

Json opened_json(const data::CachedDataset& opened) {
  const auto& [set, facts] = opened;
  Json sources = Json::array();
  for (const auto& source : facts.sources)
    sources.push_back(
        {{"name", source.name}, {"files", source.files}, {"bytes", source.bytes}, {"sha256", source.sha256}});
  return {{"set", set.name},
          {"shape", {set.shape.channels, set.shape.height, set.shape.width}},
          {"classes", set.classes},
          {"several_classes", set.kind == data::Targets::several_classes},
          {"highest_value", set.highest_value},
          {"train", split_json(set.train)},
          {"test", split_json(set.test)},
          {"sources", sources},
          {"cache",
           {{"file", facts.file.string()},
            {"bytes", facts.bytes},
            {"sha256", facts.sha256},
            {"made_now", facts.made_now},
            {"threads", facts.threads},
            {"hash_s", facts.hash_s},
            {"load_s", facts.load_s},
            {"read_s", facts.read_s},
            {"read_cpu_s", facts.read_cpu_s},
            {"write_s", facts.write_s}}},
          {"skipped", facts.skipped},
          {"skipped_why", facts.skipped_why},
          {"left_out", facts.left_out}};
}

Json entry_json(const data::CatalogueEntry& entry) {
  Json files = Json::array();
  for (const auto& download : entry.downloads)
    files.push_back({{"url", download.url}, {"md5", download.md5}, {"bytes", download.bytes}});
  return {{"set", entry.name},      {"about", entry.about},
          {"page", entry.page},     {"licence", entry.licence},
          {"folder", entry.folder}, {"classes", entry.classes},
          {"files", files},         {"published", {{"train", entry.count[0]}, {"test", entry.count[1]}}}};
}

}  // namespace

Result<ListedSets> list_data_sets(const DataRequest& request) {
  const auto options = STRATA_TRY(open_options(request));
  ListedSets listed{.data_dir = options.data_dir, .sets = {}};
  for (const auto& entry : data::catalogue()) listed.sets.push_back({&entry, state_of_set(entry, options)});
  return listed;
}

Result<SetInfo> info_of_data_set(const DataRequest& request, EventSink& events) {
  auto options = STRATA_TRY(open_options(request));
  const auto* entry = data::find_entry(request.name);
  if (entry == nullptr) STRATA_TRY(data::make_reader(request.name, options));
  options.make = false;
  auto opened = open_set(request.name, options, events);
  if (!opened && interrupted()) return tl::unexpected(opened.error());
  return SetInfo{.name = request.name, .entry = entry, .opened = std::move(opened)};
}

Json to_json(const SetInfo& set) {
  auto json = set.entry ? entry_json(*set.entry) : Json{{"set", set.name}};
  json["here"] = set.opened ? opened_json(*set.opened) : Json(nullptr);
  if (!set.opened) json["why_not"] = set.opened.error().what;
  return json;
}

Result<VerifiedSet> verify_data_set(const DataRequest& request, EventSink& events) {
  const auto options = STRATA_TRY(open_options(request));
  const auto start = std::chrono::steady_clock::now();
  std::size_t published = 0;
  if (const auto* entry = data::find_entry(request.name); entry != nullptr && !request.partial)
    published = STRATA_TRY(data::check_published(*entry, files_of(request.name, options)));
  auto opened = STRATA_TRY(open_set(request.name, options, events));
  return VerifiedSet{.opened = std::move(opened),
                     .published_checksums = published,
                     .all_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

Json to_json(const VerifiedSet& set) {
  auto json = opened_json(set.opened);
  json["all_s"] = set.all_s;
  json["published_checksums"] = set.published_checksums;
  return json;
}

Result<FetchedSet> fetch_data_set(const DataRequest& request, EventSink& events, bool on_terminal) {
  const auto options = STRATA_TRY(open_options(request));
  const auto* entry = data::find_entry(request.name);
  if (entry == nullptr) {
    STRATA_TRY(data::make_reader(request.name, options));  // which says what is wrong with the name
    return fail(fmt::format("{} is a folder: there is nothing to fetch", request.name), "", Exit::usage);
  }
  FetchedSet done{.data_dir = options.data_dir, .fetched = Fetched::part_of_strata};
  if (entry->downloads.empty()) return done;
  const data::FetchOptions fetching{.data_dir = options.data_dir,
                                    .from = request.from,
                                    .on_terminal = on_terminal,
                                    .note = [&](const std::string& line) { events.note(line); }};
  const auto lock = STRATA_TRY(unless_interrupted(data::lock_data_dir(fetching)));
  const auto reader = data::make_reader(request.name, options);
  done.fetched = reader && (*reader)->sources() ? Fetched::before : Fetched::now;
  if (done.fetched == Fetched::now) STRATA_TRY(unless_interrupted(data::fetch(*entry, fetching)));
  return done;
}

Result<fs::path> write_sheet(const DataRequest& request, EventSink& events) {
  const auto options = STRATA_TRY(open_options(request));
  const auto opened = STRATA_TRY(open_set(request.name, options, events));
  const auto part = request.split == "train" ? data::Part::train : data::Part::test;
  const auto output = request.output.empty() ? opened.set.name + ".html" : request.output;
  std::ofstream out(output, std::ios::binary | std::ios::trunc);
  out << report::contact_sheet(opened.set, part, static_cast<std::size_t>(request.count));
  if (!out.flush()) return fail(fmt::format("cannot write {}", output), "name another file: -o FILE", Exit::usage);
  return output;
}

Result<Json> answer_of_data(const DataRequest& request, EventSink& events) {
  if (request.action == "info") return to_json(STRATA_TRY(info_of_data_set(request, events)));
  if (request.action == "verify") return to_json(STRATA_TRY(verify_data_set(request, events)));
  if (request.action == "show") {
    const auto page = STRATA_TRY(write_sheet(request, events));
    return Json{{"file", fs::absolute(page).string()}};
  }
  if (request.action == "fetch") {
    const auto done = STRATA_TRY(fetch_data_set(request, events));
    return Json{{"folder", done.fetched == Fetched::part_of_strata ? Json() : Json(done.data_dir.string())},
                {"fetched_now", done.fetched == Fetched::now}};
  }
  const auto listed = STRATA_TRY(list_data_sets(request));
  Json all = Json::array();
  for (const auto& [entry, state] : listed.sets) {
    all.push_back(entry_json(*entry));
    all.back()["state"] = state;
  }
  return all;
}

}  // namespace strata::engine
