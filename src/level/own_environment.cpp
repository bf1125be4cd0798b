// SPDX-License-Identifier: Apache-2.0
#include "level/own_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "common/escape.hpp"
#include "common/hash.hpp"
#include "common/places.hpp"
#include "common/text.hpp"

namespace strata::level {
namespace fs = std::filesystem;
namespace {

// "3.11" of the environment that an interpreter belongs to, from its pyvenv.cfg; empty: it has none.
std::string python_version(const std::string& python) {
  std::ifstream file(fs::path(python).parent_path().parent_path() / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    const auto key = line.substr(0, line.find_first_of(" ="));
    if (equals == std::string::npos || (key != "version" && key != "version_info")) continue;
    const auto numbers = split(line.substr(std::min(line.find_first_not_of(" =", equals), line.size())), '.');
    if (numbers.size() >= 2) return numbers[0] + "." + numbers[1];
  }
  return {};
}

}  // namespace

bool has_own_environment(const Level& level) {
  return !level.requirements.empty();
}

fs::path own_environment(const Level& level, const Places& places) {
  const auto key = sha256_hex(level.requirements + " " + python_version(places.tools_python)).substr(0, 12);
  return fs::path(places.root) / "build" / "environments" / (level.id + "-" + key);
}

std::optional<Error> own_environment_missing(const Level& level, const Places& places) {
  if (!has_own_environment(level)) return std::nullopt;
  const auto folder = own_environment(level, places);
  if (there_is(folder / "bin" / "python")) return std::nullopt;
  if (!there_is(fs::path(places.root) / "setup"))
    return Error{"it brings an environment of its own, which a strata that pip installed, or a pack, does not install",
                 "measure it with strata in a clone of its repository, which installs it on first use",
                 Exit::environment};
  const auto size = own_environment_size(level);
  const auto install =
      fmt::format("`./strata level install {}` installs it{}", level.id, size.empty() ? "" : ": " + size);
  std::ifstream failed(folder.string() + ".failed");
  std::string reason, advice;
  if (std::getline(failed, reason)) {
    std::getline(failed, advice);
    return Error{
        fmt::format("its environment could not be installed: {}", reason),
        fmt::format("{}{}`./strata level install {}` tries again", advice, advice.empty() ? "" : "; ", level.id),
        Exit::environment};
  }
  const bool stopped = there_is(folder.string() + ".part");
  return Error{stopped ? "its environment is not complete: it was stopped, or is still being installed"
                       : "its environment is not installed (a run that names it with --levels installs it)",
               install, Exit::environment};
}

std::string own_environment_size(const Level& level) {
  std::ifstream file(level.folder / "requirements.txt");
  constexpr std::string_view middle = " MB to download, ", end = " MB on disk";
  for (std::string line; std::getline(file, line) && line.starts_with('#');) {
    const auto begins = line.find_first_not_of("# "), stops = line.find(end);
    if (stops != std::string::npos && line.find(middle) < stops)
      return escape::one_line(line.substr(begins, stops + end.size() - begins));
  }
  return {};
}

}  // namespace strata::level
