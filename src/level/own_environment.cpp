// SPDX-License-Identifier: Apache-2.0
#include "level/own_environment.hpp"

#include <fmt/format.h>

#include <fstream>
#include <regex>

#include "common/hash.hpp"
#include "common/places.hpp"

namespace strata::level {
namespace fs = std::filesystem;
namespace {

// "3.11" of the environment that an interpreter belongs to, from its pyvenv.cfg; empty: it has none.
std::string python_version(const std::string& python) {
  std::ifstream file(fs::path(python).parent_path().parent_path() / "pyvenv.cfg");
  static const std::regex version(R"(version(?:_info)? *= *(\d+\.\d+).*)");
  std::smatch match;
  for (std::string line; std::getline(file, line);)
    if (std::regex_match(line, match, version)) return match[1];
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
  static const std::regex size(R"(# *(\d+ MB to download, \d+ MB on disk).*)");
  std::smatch match;
  for (std::string line; std::getline(file, line) && line.starts_with('#');)
    if (std::regex_match(line, match, size)) return match[1];
  return {};
}

}  // namespace strata::level
