// SPDX-License-Identifier: Apache-2.0
#include "plan/named_environments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "common/escape.hpp"
#include "common/text.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
namespace {

constexpr const char* kForm = "write --env NAME=PATH, as --env old=/path/to/venv/bin/python";

bool good_name(const std::string& name) {
  return !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

// Where a shell finds a bare name; as it is where it does not.
fs::path looked_up(const fs::path& name) {
  const char* folders = std::getenv("PATH");
  for (const auto& folder : split(folders == nullptr ? "" : folders, ':'))
    if (const auto path = fs::path(folder) / name; !folder.empty() && access(path.c_str(), X_OK) == 0) return path;
  return name;
}

// Two names of one environment's interpreter, as bin/python and bin/python3 are. A script in front of an interpreter is
// another: it may set other variables.
bool same_interpreter(const fs::path& a, const fs::path& b) {
  std::error_code ec;
  return a == b || (fs::equivalent(a.parent_path(), b.parent_path(), ec) && fs::equivalent(a, b, ec));
}

tl::unexpected<Error> wrong_usage(std::string what, std::string hint) {
  return fail(std::move(what), std::move(hint), Exit::usage);
}

Result<NamedPython> parse_environment(const std::string& text) {
  const auto end = text.find('=');
  const auto shown = escape::one_line(text);
  if (end == std::string::npos || end + 1 == text.size())
    return wrong_usage(fmt::format("--env {}: the {} is missing", shown, end == std::string::npos ? "name" : "path"),
                       kForm);
  const auto name = text.substr(0, end);
  if (!good_name(name))
    return wrong_usage(fmt::format("--env {}: the name is '{}'; allowed are 1 to 40 of a-z, 0-9, '.', '_' and '-'",
                                   shown, escape::one_line(name)),
                       kForm);
  const auto python = interpreter_at(text.substr(end + 1));
  std::error_code ec;
  if (!fs::is_regular_file(python, ec) || access(python.c_str(), X_OK) != 0)
    return wrong_usage(
        fmt::format("--env {}: {} is no Python interpreter: {}", shown, escape::one_line(python.string()),
                    fs::exists(python, ec) ? "it cannot be run" : "there is no such file"),
        "give the path of an interpreter that has PyTorch 2.11 or newer, or the folder of a virtual environment");
  return NamedPython{name, python.string()};
}

// What the launcher set up for an environment: a line "name, interpreter, level binaries, overlay" with tabs. Programs
// of levels that were built for another interpreter would measure that one's PyTorch under this name: then there are
// none.
Installation place_of(const NamedPython& named, Installation place) {
  if (!same_interpreter(place.python, named.python)) {
    place.level_build = place.root / "build" / ("not-set-up-for-" + named.name);
    place.overlay.clear();
  }
  place.python = named.python;
  const char* lines = std::getenv("STRATA_ENVIRONMENTS");
  for (const auto& line : split(lines == nullptr ? "" : lines, '\n')) {
    const auto fields = split(line, '\t');
    if (fields.size() != 4 || fields[0] != named.name || !same_interpreter(fields[1], named.python)) continue;
    place.level_build = fields[2];
    place.overlay = fields[3];
  }
  return place;
}

}  // namespace

fs::path interpreter_at(const std::string& text) {
  std::error_code ec;
  fs::path path = text.find('/') == std::string::npos && !fs::is_directory(text, ec) ? looked_up(text) : fs::path(text);
  if (fs::is_directory(path, ec)) path /= "bin/python";
  const auto absolute = fs::absolute(path, ec);
  return ec ? path : absolute.lexically_normal();
}

Result<std::vector<NamedPython>> parse_environments(const std::vector<std::string>& texts) {
  std::vector<NamedPython> all;
  for (const auto& text : texts) {
    auto named = STRATA_TRY(parse_environment(text));
    for (const auto& before : all) {
      if (before.name == named.name)
        return wrong_usage(fmt::format("--env {}: the name {} is given twice", escape::one_line(text), named.name),
                           "give each environment a name of its own");
      if (same_interpreter(before.python, named.python))
        return wrong_usage(
            fmt::format("--env {} and --env {} name the same interpreter: {}", before.name, named.name, named.python),
            "name another one, or leave one of them out; --aa compares every level with itself");
    }
    all.push_back(std::move(named));
  }
  return all;
}

Result<void> check_alone(const std::vector<NamedPython>& named, const std::string& python) {
  if (named.empty() || python.empty()) return {};
  return wrong_usage("--env and --python exclude each other: --python PATH is the short form for one environment",
                     fmt::format("name that one too: --env NAME={}", python));
}

std::string environment_words(const std::vector<NamedPython>& named) {
  std::string words;
  for (const auto& environment : named)
    words += " --env " + escape::shell_word(environment.name + "=" + environment.python);
  return words;
}

Result<std::vector<NamedEnvironment>> ask_named_environments(const std::vector<NamedPython>& named,
                                                             const Installation& place,
                                                             const std::vector<std::string>& modules) {
  std::vector<NamedEnvironment> all;
  for (const auto& named_environment : named) {
    NamedEnvironment entry{named_environment.name, place_of(named_environment, place), {}};
    auto environment = ask_environment(named_environment.python, entry.place, modules, EnvironmentDetail::packages);
    if (!environment)
      return wrong_usage(fmt::format("--env {}: {}", named_environment.name, environment.error().what),
                         "give the path of a Python interpreter that has PyTorch 2.11 or newer");
    if (environment->torch_version.empty())
      return fail(fmt::format("--env {}: {} has no PyTorch", named_environment.name, named_environment.python),
                  "install PyTorch 2.11 or newer there, or name another interpreter", Exit::environment);
    environment->name = named_environment.name;
    entry.environment = std::move(*environment);
    all.push_back(std::move(entry));
  }
  return all;
}

std::vector<level::Level> in_each_environment(const std::vector<level::Level>& levels,
                                              const std::vector<NamedPython>& named) {
  std::vector<level::Level> all;
  for (const auto& level : levels) {
    if (named.size() < 2 || !level.environment) {
      all.push_back(level);
      continue;
    }
    for (const auto& environment : named) {
      all.push_back(level);
      all.back().in_environment = environment.name;
    }
  }
  return all;
}

}  // namespace strata::plan
