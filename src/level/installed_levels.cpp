// SPDX-License-Identifier: Apache-2.0
#include "level/installed_levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/outside.hpp"
#include "common/python.hpp"
#include "worker/worker.hpp"

namespace strata::level {
namespace fs = std::filesystem;
namespace {

// What an entry point names: a level's folder, or why it names none.
struct PackagedFolder {
  std::string distribution, entry;
  fs::path folder;
  std::string problem;  // empty: none
};

std::vector<PackagedFolder> ask(const Installation& place) {
  worker::Launch launch;
  launch.argv =
      python_command(place.python, place.root, {(place.root / "src" / "level" / "packaged_levels.py").string()});
  launch.env = python_variables({});
  const auto ran = worker::run_to_end(launch, std::chrono::seconds(60));
  if (!ran || ran->exit_code != 0) return {};  // whoever needs the interpreter says what is wrong with it
  const auto answer = outside::parse(ran->stdout_text, place.python);
  std::vector<PackagedFolder> folders;
  if (!answer || !answer->is_array()) return folders;
  for (const auto& level : *answer)
    folders.push_back({.distribution = outside::text_or(level, "distribution"),
                       .entry = outside::text_or(level, "entry"),
                       .folder = outside::text_or(level, "folder"),
                       .problem = outside::text_or(level, "problem")});
  return folders;
}

// A command looks for levels several times.
const std::vector<PackagedFolder>& packaged_folders(const Installation& place) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<PackagedFolder>> answers;
  const std::scoped_lock lock(mutex);
  const auto known = answers.find(place.python);
  return known != answers.end() ? known->second : answers.emplace(place.python, ask(place)).first->second;
}

std::string place_of(const Level& level) {
  return level.distribution.empty()
             ? level.folder.string()
             : fmt::format("{} of the distribution {}", level.folder.string(), level.distribution);
}

Result<Level> read_packaged(const DiscoveredLevels& found, const PackagedFolder& packaged) {
  const auto name =
      fmt::format("distribution {}, entry point \"{}\" of stratabench.levels", packaged.distribution, packaged.entry);
  if (!packaged.problem.empty())
    return fail(fmt::format("{}: {}", name, packaged.problem),
                "it names a package whose folder holds level.json, or a function that gives such a folder; repair it, "
                "or uninstall the distribution",
                Exit::usage);
  auto level = read(packaged.folder);
  if (!level) return fail(fmt::format("{}: {}", name, level.error().what), level.error().hint, level.error().exit);
  for (const auto& other : found.levels)
    if (other.id == level->id)
      return fail(fmt::format("{}: the id \"{}\" of {} is taken by {}", name, level->id,
                              (packaged.folder / "level.json").string(), place_of(other)),
                  "give it another id, or uninstall the distribution", Exit::usage);
  level->distribution = packaged.distribution;
  return level;
}

void add_packaged(DiscoveredLevels& found, const std::vector<PackagedFolder>& packaged) {
  for (const auto& each : packaged) {
    std::error_code error;
    const auto same = std::find_if(found.levels.begin(), found.levels.end(), [&](const Level& other) {
      return !each.folder.empty() && fs::equivalent(other.folder, each.folder, error);
    });
    if (same != found.levels.end()) {  // STRATA_LEVEL_PATH names it, too
      same->distribution = each.distribution;
      continue;
    }
    auto level = read_packaged(found, each);
    if (level)
      found.levels.push_back(std::move(*level));
    else
      found.problems.push_back(
          {each.folder.empty() ? fs::path(each.distribution) : each.folder / "level.json", level.error()});
  }
  sort_by_rank(found.levels);
}

}  // namespace

DiscoveredLevels installed_levels(const Installation& place) {
  auto found = discover(search_path(place.root));
  add_packaged(found, packaged_folders(place));
  return found;
}

}  // namespace strata::level
