// SPDX-License-Identifier: Apache-2.0
#include "common/places.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace strata {
namespace fs = std::filesystem;
namespace {
std::string variable(const char* name, const std::string& otherwise = {}) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}
}  // namespace

Installation installation() {
  Installation place;
  std::error_code ec;
  // Without the launcher: build/<preset>/strata lies two folders below the tree.
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  place.root = variable("STRATA_ROOT", self.parent_path().parent_path().parent_path().string());
  const std::string venv = (place.root / ".venv/bin/python").string();
  place.tools_python = variable("STRATA_TOOLS_PYTHON", venv);
  place.python = variable("STRATA_PYTHON", venv);
  place.level_build = variable("STRATA_LEVEL_BUILD", (place.root / "build/levels").string());
  place.overlay = variable("STRATA_OVERLAY");
  const auto home = home_folder();
  const fs::path caches = variable("XDG_CACHE_HOME", home.empty() ? "" : (home / ".cache").string());
  place.cache = variable("STRATA_CACHE", caches.empty() ? "" : (caches / "strata").string());
  return place;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool there_is(const std::filesystem::path& path) {
  std::error_code ec;
  return std::filesystem::exists(path, ec);
}

bool holds_files(const std::filesystem::path& folder) {
  std::error_code ec, none;
  const std::filesystem::recursive_directory_iterator all(folder, ec);
  return std::any_of(begin(all), end(all), [&](const auto& entry) { return entry.is_regular_file(none); });
}

}  // namespace strata
