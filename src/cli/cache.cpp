// SPDX-License-Identifier: Apache-2.0
// `strata cache list|prune|limit`: what networks were captured as, and what levels made of them.
#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "engine/cache_content.hpp"
#include "report/format.hpp"
#include "report/table.hpp"

namespace strata::cli {
namespace {

struct CacheArguments {
  std::string format = "text";
  double days = 0;         // prune what was not used for so long
  std::uint64_t most = 0;  // bytes that the cache may keep
};

std::string in_words(std::uint64_t bytes) {
  return report::size(static_cast<double>(bytes));
}

Result<int> list_cache(const CacheArguments& a) {
  const auto format = STRATA_TRY(format_option(a.format));
  const auto listed = STRATA_TRY(engine::list_cache());
  std::vector<report::Cells> rows;
  for (const auto& entry : listed.entries)
    rows.push_back({entry.kind, entry.name, in_words(entry.bytes), entry.last_used, entry.folder});
  answer(report::table({"kind", "what", report::numbers("size"), "last used (UTC)", "folder"}, rows, format));
  tell(fmt::format("{} folders in {}, {} in all\n", rows.size(), listed.cache.string(), in_words(listed.bytes)));
  return 0;
}

Result<int> say_removed(const Result<engine::RemovedEntries>& result) {
  const auto removed = STRATA_TRY(result);
  answer(fmt::format("removed {} folders of {}, {}; {} are left\n", removed.folders, removed.cache.string(),
                     in_words(removed.freed), in_words(removed.left)));
  if (!removed.failure.empty()) return fail(removed.failure, "remove it by hand");
  return 0;
}

}  // namespace

void add_cache(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("cache", "the sizes of captured networks and artefacts of levels, and removing them");
  verb->require_subcommand(1);
  auto a = std::make_shared<CacheArguments>();
  auto* list = verb->add_subcommand("list", "every capture, network and artefact with its size, the last used first");
  format_choice(list->add_option("--format", a->format, "of the list"));
  list->footer("Exit codes: 0 shown; 1 the cache cannot be read; 2 wrong usage.");
  set_action(*list, exit_code, [a] { return list_cache(*a); });
  const char* codes = "Exit codes: 0 removed; 1 something could not be removed, or a run is measuring; 2 wrong usage.";
  auto* prune = verb->add_subcommand("prune", "remove them; what is needed again is made again");
  positive(prune->add_option("--older-than", a->days, "only what was not used for so many days (default: all)"))
      ->type_name("DAYS");
  prune->footer(codes);
  set_action(*prune, exit_code, [a] { return say_removed(engine::prune_cache(a->days)); });
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
  set_action(*limit, exit_code, [a] { return say_removed(engine::limit_cache(a->most)); });
}

}  // namespace strata::cli
