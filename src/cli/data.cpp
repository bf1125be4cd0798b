// SPDX-License-Identifier: Apache-2.0
// `strata data list|info|verify|fetch|show`: data sets on this machine, read once into a cache.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "engine/data_sets.hpp"
#include "report/format.hpp"
#include "report/table.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace {

struct DataArguments : requests::DataRequest {
  std::string format = "text";
};

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

std::string set_in_words(const data::CachedDataset& opened) {
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

Result<void> list_sets(const DataArguments& a) {
  const auto listed = STRATA_TRY(engine::list_data_sets(a));
  std::vector<report::Cells> rows;
  for (const auto& [entry, state] : listed.sets)
    rows.push_back({entry->name, std::to_string(entry->count[0]), std::to_string(entry->count[1]),
                    shape_in_words(entry->shape), std::to_string(entry->classes.size()), state, entry->about});
  answer(report::table({"set", report::numbers("training"), report::numbers("test"), "image",
                        report::numbers("classes"), "state", "what it is"},
                       rows, *report::format_from(a.format)));
  if (a.format == "text") tell(fmt::format("data sets are looked for in {}\n", listed.data_dir.string()));
  return {};
}

// What `ask` answers. Progress on standard error is gone by then.
template <class Asked>
Asked with_progress(const DataArguments& a, Asked (*ask)(const requests::DataRequest&, engine::EventSink&)) {
  ProgressLine line;
  return ask(a, line);
}

Result<void> show_info(const DataArguments& a) {
  const auto info = STRATA_TRY(with_progress(a, engine::info_of_data_set));
  if (a.format == "json") {
    answer_json(engine::to_json(info), 2);
    return {};
  }
  if (info.entry) answer(entry_in_words(*info.entry));
  if (info.opened)
    answer(set_in_words(*info.opened));
  else
    answer(fmt::format("  here       no: {}\n             {}\n", info.opened.error().what, info.opened.error().hint));
  return {};
}

Result<void> verify_set(const DataArguments& a) {
  const auto verified = STRATA_TRY(with_progress(a, engine::verify_data_set));
  if (a.format == "json") {
    answer_json(engine::to_json(verified), 2);
    return {};
  }
  answer(set_in_words(verified.opened));
  if (verified.published_checksums > 0)
    answer(fmt::format("  {} files have their publisher's checksum\n", verified.published_checksums));
  answer(fmt::format("  {} in {}\n", verified.opened.facts.made_now ? "read and checked" : "every byte checked",
                     seconds_in_words(verified.all_s)));
  return {};
}

Result<void> fetch_set(const DataArguments& a) {
  ProgressLine line;
  const auto done = STRATA_TRY(engine::fetch_data_set(a, line, ::isatty(STDERR_FILENO) == 1));
  if (done.fetched == engine::Fetched::part_of_strata)
    answer(fmt::format("{} is part of strata: there is nothing to fetch\n", a.name));
  else
    answer(fmt::format("{} is in {}{}; ./strata data verify {} reads it\n", a.name, done.data_dir.string(),
                       done.fetched == engine::Fetched::before ? " already" : "", a.name));
  return {};
}

Result<void> show_sheet(const DataArguments& a) {
  answer(STRATA_TRY(with_progress(a, engine::write_sheet)).string() + "\n");
  return {};
}

// The options are the members of a request for `action`, and --format.
void add_action(CLI::App& data, const char* action, const char* about, const char* codes,
                const std::vector<std::string>& formats, Result<void> (*act)(const DataArguments&), int& exit_code) {
  auto* verb = data.add_subcommand(action, about);
  const auto a = std::make_shared<DataArguments>();
  a->action = action;
  auto members = requests::members_of(*a);
  members.erase(members.begin());  // the action itself
  add_members(*verb, members);
  if (!formats.empty())
    choice(verb->add_option("--format", a->format, formats.size() > 2 ? "of the list" : "of the answer")
               ->capture_default_str(),
           formats);
  verb->footer(codes);
  set_action(*verb, exit_code, [a, act] { return act(*a); });
}

}  // namespace

void add_data(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("data", "data sets: which there are, getting, checking and looking at them");
  verb->require_subcommand(1);
  constexpr const char* shown = "Exit codes: 0 shown; 2 wrong usage.";
  constexpr const char* read = "Exit codes: 0 good; 1 the files are damaged; 2 wrong usage; 3 a file is missing.";
  add_action(*verb, "list", "every set that strata reads, and which of them are here", shown,
             {"text", "json", "csv", "md"}, list_sets, exit_code);
  add_action(*verb, "info", "what a set is, whose, and what its cache took", shown, {"text", "json"}, show_info,
             exit_code);
  add_action(*verb, "verify", "read a set into the cache, or check every byte of the one that is there", read,
             {"text", "json"}, verify_set, exit_code);
  add_action(*verb, "fetch", "get a set from its publisher, checked by its checksum",
             "Exit codes: 0 it is here; 1 a checksum is another, or no room; 2 wrong usage; 3 no network, or no curl.",
             {}, fetch_set, exit_code);
  add_action(*verb, "show", "some images of a set with their classes, as one HTML page", read, {}, show_sheet,
             exit_code);
}

}  // namespace strata::cli
