// SPDX-License-Identifier: Apache-2.0
#include "plan/references.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/confine.hpp"
#include "common/file_lock.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
namespace {

constexpr const char* kReferences = "references";
// What workers may come to need while they run, made before: a confined process reads nothing that is made later beside
// the hidden folder.
constexpr const char* kBeside[] = {"artefacts", "bundles", "data", "headers", "logs", "networks", "tmp"};

// Folders, not links to them.
std::vector<fs::path> reference_folders(const fs::path& bundle) {
  std::vector<fs::path> result;
  std::error_code ec;
  for (fs::recursive_directory_iterator entry(bundle, ec), end; !ec && entry != end; entry.increment(ec)) {
    std::error_code gone;
    if (entry->path().filename() != "reference" || entry->is_symlink(gone) || !entry->is_directory(gone)) continue;
    result.push_back(entry->path());
    entry.disable_recursion_pending();
  }
  return result;
}

bool shown_on_demand() {
  const char* setting = std::getenv("STRATA_SHOW_REFERENCES");
  return setting != nullptr && std::string_view(setting) == "1";
}

}  // namespace

fs::path references_of(const fs::path& bundle) {
  return bundle.parent_path().parent_path() / kReferences / bundle.filename();
}

Result<void> set_references_apart(const fs::path& bundle) {
  if (reference_folders(bundle).empty()) return {};
  const auto apart = references_of(bundle);
  STRATA_TRY(private_folder(apart.parent_path(), "set STRATA_CACHE to a folder of your own"));
  const FileLock lock(apart.parent_path() / ".lock");  // another run may have captured the same
  for (const auto& folder : reference_folders(bundle)) {
    const auto target = apart / folder.lexically_relative(bundle);
    std::error_code ec;
    fs::remove_all(target, ec);  // of an earlier capture of that name
    if (!ec) fs::create_directories(target.parent_path(), ec);
    if (!ec) fs::rename(folder, target, ec);
    if (!ec) fs::create_directory_symlink(target.lexically_relative(folder.parent_path()), folder, ec);
    if (ec)
      return fail(
          fmt::format("cannot move the references of a captured network to {}: {}", target.string(), ec.message()),
          "free some space, or set STRATA_CACHE to a folder that can be written");
  }
  return {};
}

void remove_lost_references(const fs::path& bundles) {
  const auto all = bundles.parent_path() / kReferences;
  std::error_code ec;
  for (fs::directory_iterator entry(all, ec), end; !ec && entry != end; entry.increment(ec)) {
    std::error_code gone;
    if (entry->is_directory(gone) && !fs::exists(bundles / entry->path().filename(), gone))
      fs::remove_all(entry->path(), gone);
  }
}

std::string hide_references(worker::Launch& launch, const Installation& place) {
  if (shown_on_demand()) return "STRATA_SHOW_REFERENCES is set";
  if (place.cache.empty()) return "there is no cache to hide them in";
  const auto folder = place.cache / kReferences;
  for (const char* name : kBeside) ::mkdir((place.cache / name).c_str(), 0700);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fmt::format("{} cannot be made: {}", folder.string(), std::strerror(errno));
  if (auto why = why_not_hidden(folder); !why.empty()) return why;
  launch.hidden = folder.string();
  return {};
}

}  // namespace strata::plan
