// SPDX-License-Identifier: Apache-2.0
#include "plan/read_files.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "common/hash.hpp"
#include "common/outside.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// A large file is hashed once a process; the time of its last change of any kind cannot be set back.
std::string hash_of(const std::string& path) {
  static std::map<std::array<std::uint64_t, 7>, std::string> known;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  const std::array<std::uint64_t, 7> identity{number(status.st_dev),          number(status.st_ino),
                                              number(status.st_size),         number(status.st_mtim.tv_sec),
                                              number(status.st_mtim.tv_nsec), number(status.st_ctim.tv_sec),
                                              number(status.st_ctim.tv_nsec)};
  const auto [at, added] = known.try_emplace(identity);
  if (added) at->second = sha256_of_file(path).value_or("");
  return at->second;
}

// As src/capture/opened.py makes it: the sorted names, folders with a slash behind them.
std::string listing_hash(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return {};
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || name == "__pycache__") continue;
    struct stat status {};
    const bool is_folder = stat((path + "/" + name).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    names.push_back(is_folder ? name + "/" : name);
  }
  std::sort(names.begin(), names.end());
  std::string all;
  for (const auto& name : names) all += name + "\n";
  return sha256_hex(all);
}

std::string shown(const std::string& path, const fs::path& base) {
  const auto relative = fs::path(path).lexically_relative(base);
  return relative.empty() || relative.string().starts_with("..") ? path : relative.string();
}

// What became of one file since; empty: nothing.
std::string change_of(const Json& entry) {
  const auto path = outside::text_or(entry, "path");
  std::error_code ec;
  if (path.empty()) return "is not recorded";
  if (entry.contains("changed")) return "changed while it was read";
  if (entry.contains("absent"))
    return fs::symlink_status(path, ec).type() == fs::file_type::not_found ? "" : "is there now";
  if (entry.contains("listing"))
    return listing_hash(path) == outside::text_or(entry, "listing") ? "" : "has other files in it";
  const auto expected = outside::text_or(entry, "sha256");
  if (!expected.empty() && hash_of(path) == expected) return {};
  return fs::exists(path, ec) ? "changed" : "is gone";
}

std::optional<std::string> sentence(const std::vector<std::string>& changes) {
  if (changes.empty()) return std::nullopt;
  if (changes.size() == 1) return changes.front();
  return fmt::format("{}, and {} more file{} changed", changes.front(), changes.size() - 1,
                     changes.size() == 2 ? "" : "s");
}

// What identifies an entry beside its content.
std::string key_of(const Json& entry) {
  return outside::text_or(entry, "path") + (entry.contains("listing") ? "/" : "");
}

}  // namespace

std::optional<std::string> changed_files(const Json& read, const fs::path& base) {
  if (!read.is_array()) return "what it was made from is not recorded";
  std::vector<std::string> changes;
  for (const auto& entry : read) {
    if (!entry.is_object()) return "what it was made from is not recorded";
    if (const auto change = change_of(entry); !change.empty())
      changes.push_back(shown(outside::text_or(entry, "path"), base) + " " + change);
  }
  return sentence(changes);
}

std::optional<std::string> changes_between(const Json& before, const Json& after, const fs::path& base) {
  std::map<std::string, const Json*> earlier;
  std::vector<std::string> changes;
  if (before.is_array())
    for (const auto& entry : before)
      if (entry.is_object()) earlier[key_of(entry)] = &entry;
  if (after.is_array())
    for (const auto& entry : after) {
      if (!entry.is_object()) continue;
      const auto path = shown(outside::text_or(entry, "path"), base);
      const auto known = earlier.find(key_of(entry));
      if (known == earlier.end()) {
        if (!entry.contains("absent")) changes.push_back(path + " is read now");
        continue;
      }
      if (*known->second != entry) changes.push_back(path + " changed");
      earlier.erase(known);
    }
  for (const auto& [key, entry] : earlier)
    if (!entry->contains("absent"))
      changes.push_back(shown(outside::text_or(*entry, "path"), base) + " is not read any more");
  // what changed says more than what came or went with it
  std::stable_partition(changes.begin(), changes.end(),
                        [](const auto& change) { return change.ends_with(" changed"); });
  return sentence(changes);
}

}  // namespace strata::plan
