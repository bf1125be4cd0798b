// SPDX-License-Identifier: Apache-2.0
// `strata data list|info|verify|fetch|show`: data sets on this machine, read once into a cache.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/console.hpp"
#include "cli/members.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "common/nearest.hpp"
#include "common/places.hpp"
#include "common/text.hpp"
#include "data/cache.hpp"
#include "data/catalogue.hpp"
#include "data/fetch.hpp"
#include "report/contact_sheet.hpp"
#include "report/format.hpp"
#include "report/table.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

struct DataArguments {
  std::string name, data_dir, format = "text", decode = "full", split = "train", output, from;
  std::int64_t size = 224, count = 64;
  int threads = 0;
  bool partial = false, skip_bad = false, again = false;
};

constexpr const char* no_home_hint = "name a folder: --data-dir DIR, or STRATA_DATA";

Result<data::OpenOptions> open_options(const DataArguments& a) {
  data::OpenOptions options;
  std::error_code ec;
  const auto folder = a.data_dir.empty() ? data::default_data_dir() : fs::path(a.data_dir);
  if (folder.empty()) return fail("there is no folder for data sets: HOME is not set", no_home_hint, Exit::usage);
  options.data_dir = fs::absolute(folder, ec);
  options.cache_dir = installation().cache;
  if (options.cache_dir.empty())
    return fail("there is no place for a cache: HOME is not set", "set STRATA_CACHE to a folder of your own",
                Exit::environment);
  options.size = a.size;
  options.decode = a.decode == "full" ? data::Decode::full : data::Decode::scaled;
  options.partial = a.partial;
  options.skip_bad = a.skip_bad;
  options.again = a.again;
  options.threads = a.threads > 0 ? a.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return options;
}

std::string bytes_in_words(std::uint64_t bytes) {
  return report::size(static_cast<double>(bytes));
}

std::string number_in_words(std::size_t number) {
  return report::count(static_cast<double>(number));
}

std::string seconds_in_words(double seconds) {
  return report::duration(seconds * 1000);
}

std::string shape_in_words(const data::Shape& shape) {
  return shape.height > 0 ? fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width)
                          : fmt::format("{}x--size", shape.channels);
}

// With progress on standard error, which is gone by the time that the answer stands.
Result<data::Opened> open_with_progress(const std::string& name, data::OpenOptions options) {
  ProgressLine line;
  options.status = [&](const std::string& doing, double seconds_left) {
    line.progress(doing, seconds_left, "reading");
  };
  options.note = [&](const std::string& note) { line.note(note); };
  auto opened = data::open_dataset(name, options);
  if (!opened && interrupted().load()) opened.error().exit = static_cast<Exit>(interrupt_exit_code());
  return opened;
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
  return fmt::format("missing: {} to fetch", bytes_in_words(bytes));
}

int list_sets(const DataArguments& a) {
  const auto options = open_options(a);
  if (!options) return print_error(options.error());
  std::vector<report::Cells> rows;
  for (const auto& entry : data::catalogue())
    rows.push_back({entry.name, std::to_string(entry.count[0]), std::to_string(entry.count[1]),
                    shape_in_words(entry.shape), std::to_string(entry.classes.size()), state_of_set(entry, *options),
                    entry.about});
  answer(report::table({"set", "training", "test", "image", "classes", "state", "what it is"}, rows,
                       *report::format_from(a.format)));
  if (a.format == "text") tell(fmt::format("data sets are looked for in {}\n", options->data_dir.string()));
  return 0;
}

nlohmann::json split_json(const data::Split& split) {
  return {{"images", split.count}, {"list_sha256", split.list_sha256}};
}

nlohmann::json opened_json(const data::Opened& opened) {
  const auto& [set, facts] = opened;
  nlohmann::json sources = nlohmann::json::array();
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

std::string set_in_words(const data::Opened& opened) {
  const auto& [set, facts] = opened;
  auto out = fmt::format("{}: {} training and {} test images of {} in {} classes\n", set.name,
                         number_in_words(set.train.count), number_in_words(set.test.count), shape_in_words(set.shape),
                         set.classes.size());
  if (facts.file.empty()) return out + "  part of strata; needs no file\n";
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  for (const auto& source : facts.sources) {
    bytes += source.bytes;
    files += source.files;
  }
  out += fmt::format("  from   {} files, {}\n", number_in_words(files), bytes_in_words(bytes));
  out += fmt::format("  cache  {}, {}\n", bytes_in_words(facts.bytes), facts.file.string());
  out += fmt::format("         made in {} on {} threads: hashes {}, files {}, images {}, checksum {}\n",
                     seconds_in_words(facts.hash_s + facts.load_s + facts.read_s + facts.write_s), facts.threads,
                     seconds_in_words(facts.hash_s), seconds_in_words(facts.load_s), seconds_in_words(facts.read_s),
                     seconds_in_words(facts.write_s));
  if (facts.skipped > 0)
    out += fmt::format("  left out  {} records that cannot be read\n", number_in_words(facts.skipped));
  for (const auto& why : facts.skipped_why) out += fmt::format("    {}\n", why);
  for (const auto& words : facts.left_out) out += fmt::format("  not taken {}\n", words);
  return out;
}

std::string entry_in_words(const data::CatalogueEntry& entry) {
  auto out = fmt::format("{}: {}\n  published  {} training and {} test images of {} in {} classes\n", entry.name,
                         entry.about, number_in_words(entry.count[0]), number_in_words(entry.count[1]),
                         shape_in_words(entry.shape), entry.classes.size());
  out += fmt::format("  from       {}\n  licence    {}\n", entry.page, entry.licence);
  for (const auto& download : entry.downloads)
    out += fmt::format("  file       {} ({}, md5 {})\n", download.url, bytes_in_words(download.bytes), download.md5);
  return out;
}

nlohmann::json entry_json(const data::CatalogueEntry& entry) {
  nlohmann::json files = nlohmann::json::array();
  for (const auto& download : entry.downloads)
    files.push_back({{"url", download.url}, {"md5", download.md5}, {"bytes", download.bytes}});
  return {{"set", entry.name},      {"about", entry.about},
          {"page", entry.page},     {"licence", entry.licence},
          {"folder", entry.folder}, {"classes", entry.classes},
          {"files", files},         {"published", {{"train", entry.count[0]}, {"test", entry.count[1]}}}};
}

int show_info(const DataArguments& a) {
  auto options = open_options(a);
  if (!options) return print_error(options.error());
  const auto* entry = data::find_entry(a.name);
  if (entry == nullptr)
    if (const auto reader = data::make_reader(a.name, *options); !reader) return print_error(reader.error());
  options->make = false;
  const auto opened = open_with_progress(a.name, *options);
  if (a.format == "json") {
    auto json = entry ? entry_json(*entry) : nlohmann::json{{"set", a.name}};
    json["here"] = opened ? opened_json(*opened) : nlohmann::json(nullptr);
    if (!opened) json["why_not"] = opened.error().what;
    answer_json(json, 2);
    return 0;
  }
  if (entry) answer(entry_in_words(*entry));
  if (opened)
    answer(set_in_words(*opened));
  else
    answer(fmt::format("  here       no: {}\n             {}\n", opened.error().what, opened.error().hint));
  return 0;
}

// That the set is read from; none where one is missing, or the set is part of strata.
std::vector<fs::path> files_of(const std::string& name, const data::OpenOptions& options) {
  std::vector<fs::path> files;
  const auto reader = data::make_reader(name, options);
  if (const auto sources = reader ? (*reader)->sources() : tl::unexpected(reader.error()))
    for (const auto& source : *sources) files.insert(files.end(), source.files.begin(), source.files.end());
  return files;
}

int verify_set(const DataArguments& a) {
  const auto options = open_options(a);
  if (!options) return print_error(options.error());
  const auto start = std::chrono::steady_clock::now();
  std::size_t published = 0;
  if (const auto* entry = data::find_entry(a.name); entry != nullptr && !a.partial) {
    const auto checked = data::check_published(*entry, files_of(a.name, *options));
    if (!checked) return print_error(checked.error());
    published = *checked;
  }
  const auto opened = open_with_progress(a.name, *options);
  if (!opened) return print_error(opened.error());
  const double all_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (a.format == "json") {
    auto json = opened_json(*opened);
    json["all_s"] = all_s;
    json["published_checksums"] = published;
    answer_json(json, 2);
    return 0;
  }
  answer(set_in_words(*opened));
  if (published > 0) answer(fmt::format("  {} files have their publisher's checksum\n", published));
  answer(fmt::format("  {} in {}\n", opened->facts.made_now ? "read and checked" : "every byte checked",
                     seconds_in_words(all_s)));
  return 0;
}

int fetch_set(const DataArguments& a) {
  const auto options = open_options(a);
  if (!options) return print_error(options.error());
  const auto* entry = data::find_entry(a.name);
  if (entry == nullptr) {
    const auto reader = data::make_reader(a.name, *options);  // which says what is wrong with the name
    return print_error(reader ? Error{fmt::format("{} is a folder: there is nothing to fetch", a.name), "", Exit::usage}
                              : reader.error());
  }
  if (entry->downloads.empty()) {
    answer(fmt::format("{} is part of strata: there is nothing to fetch\n", a.name));
    return 0;
  }
  const data::FetchOptions fetching{.data_dir = options->data_dir,
                                    .from = a.from,
                                    .on_terminal = ::isatty(STDERR_FILENO) == 1,
                                    .note = [](const std::string& line) { tell(line + "\n"); }};
  const auto lock = data::lock_data_dir(fetching);
  if (!lock) return interrupted().load() ? interrupt_exit_code() : print_error(lock.error());
  const auto reader = data::make_reader(a.name, *options);
  if (reader && (*reader)->sources()) {
    answer(fmt::format("{} is in {} already; ./strata data verify {} reads it\n", a.name, options->data_dir.string(),
                       a.name));
    return 0;
  }
  const auto done = data::fetch(*entry, fetching);
  if (!done && interrupted().load()) {
    print_error(done.error());
    return interrupt_exit_code();
  }
  if (!done) return print_error(done.error());
  answer(fmt::format("{} is in {}; ./strata data verify {} reads it\n", a.name, options->data_dir.string(), a.name));
  return 0;
}

int show_sheet(const DataArguments& a) {
  const auto options = open_options(a);
  if (!options) return print_error(options.error());
  const auto opened = open_with_progress(a.name, *options);
  if (!opened) return print_error(opened.error());
  const auto part = a.split == "train" ? data::Part::train : data::Part::test;
  const auto output = a.output.empty() ? opened->set.name + ".html" : a.output;
  std::ofstream out(output, std::ios::binary | std::ios::trunc);
  out << report::contact_sheet(opened->set, part, static_cast<std::size_t>(a.count));
  if (!out.flush())
    return print_error({fmt::format("cannot write {}", output), "name another file: -o FILE", Exit::usage});
  answer(output + "\n");
  return 0;
}

using Arguments = std::shared_ptr<DataArguments>;

void add_place(CLI::App& verb, const Arguments& a) {
  add_member(verb, requests::member_of_data_dir(a->data_dir));
}

void add_reading(CLI::App& verb, const Arguments& a) {
  verb.add_option("name", a->name,
                  "set, as `strata data list` names it, or a folder of images, with a slash in its name")
      ->required()
      ->type_name("NAME");
  add_place(verb, a);
  whole(verb.add_option("--size", a->size, "pixels of a side, where images differ in size (VOC, folders)")
            ->capture_default_str(),
        1, 4096);
  choice(verb.add_option("--decode", a->decode,
                         "scaled: JPEGs at the smallest fraction of their size that does; faster, other pixels")
             ->capture_default_str(),
         {"full", "scaled"});
  verb.add_flag("--partial", a->partial, "accept files with fewer records than the publisher's");
  add_member(verb, requests::member_of_skip_bad(a->skip_bad));
  add_member(verb, requests::described(requests::threads(a->threads), "threads", "--threads",
                                       "that read (default: one for each processor)"));
}

void add_text_or_json(CLI::App& verb, const Arguments& a) {
  choice(verb.add_option("--format", a->format, "of the answer")->capture_default_str(), {"text", "json"});
}

}  // namespace

void add_data(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("data", "data sets: which there are, getting, checking and looking at them");
  verb->require_subcommand(1);
  const auto a = std::make_shared<DataArguments>();
  auto* list = verb->add_subcommand("list", "every set that strata reads, and which of them are here");
  add_place(*list, a);
  format_choice(list->add_option("--format", a->format, "of the list"));
  list->footer("Exit codes: 0 shown; 2 wrong usage.");
  list->callback([a, &exit_code] { exit_code = list_sets(*a); });
  const char* codes = "Exit codes: 0 good; 1 the files are damaged; 2 wrong usage; 3 a file is missing.";
  auto* info = verb->add_subcommand("info", "what a set is, whose, and what its cache took");
  add_reading(*info, a);
  add_text_or_json(*info, a);
  info->footer("Exit codes: 0 shown; 2 wrong usage.");
  info->callback([a, &exit_code] { exit_code = show_info(*a); });
  auto* verify =
      verb->add_subcommand("verify", "read a set into the cache, or check every byte of the one that is there");
  add_reading(*verify, a);
  verify->add_flag("--again", a->again, "read it even if the cache is good");
  add_text_or_json(*verify, a);
  verify->footer(codes);
  verify->callback([a, &exit_code] { exit_code = verify_set(*a); });
  auto* fetch = verb->add_subcommand("fetch", "get a set from its publisher, checked by its checksum");
  fetch->add_option("name", a->name, "set, as `strata data list` names it")->required()->type_name("NAME");
  add_place(*fetch, a);
  fetch->add_option("--from", a->from, "another place with files of the same names: https://, http:// or file://")
      ->type_name("URL");
  fetch->footer(
      "Exit codes: 0 it is here; 1 a checksum is another, or no room; 2 wrong usage; 3 no network, or no curl.");
  fetch->callback([a, &exit_code] { exit_code = fetch_set(*a); });
  auto* show = verb->add_subcommand("show", "some images of a set with their classes, as one HTML page");
  add_reading(*show, a);
  choice(show->add_option("--split", a->split, "whose images")->capture_default_str(), {"train", "test"});
  whole(show->add_option("--count", a->count, "images")->capture_default_str(), 1, 10000);
  show->add_option("-o,--output", a->output, "the page (default: NAME.html)")->type_name("FILE");
  show->footer(codes);
  show->callback([a, &exit_code] { exit_code = show_sheet(*a); });
}

}  // namespace strata::cli
