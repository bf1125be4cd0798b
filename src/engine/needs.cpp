// SPDX-License-Identifier: Apache-2.0
#include "engine/needs.hpp"

#include <algorithm>

#include "common/places.hpp"
#include "engine/suite_run.hpp"
#include "level/installed_levels.hpp"
#include "plan/jobs.hpp"
#include "requests/codec.hpp"

namespace strata::engine {
namespace {

using level::Level;

// Those that distributions bring, too, of the interpreter that will be measured.
level::DiscoveredLevels levels_of(const std::string& python, const std::vector<plan::NamedPython>& named) {
  auto place = installation();
  const auto& interpreter = named.empty() ? python : named.front().python;
  if (!interpreter.empty()) place.python = plan::interpreter_at(interpreter).string();
  return level::installed_levels(place);
}

void add(std::vector<std::string>& programs, const std::string& program) {
  if (std::find(programs.begin(), programs.end(), program) == programs.end()) programs.push_back(program);
}

// What its start and prepare take from the build folder: {build}/NAME.
void add_programs(std::vector<std::string>& programs, const Level& level) {
  constexpr std::string_view kBuild = "{build}/";
  for (const auto* command : {&level.start, &level.prepare})
    for (const auto& word : *command)
      if (word.starts_with(kBuild)) add(programs, word.substr(kBuild.size()));
}

// Levels that do not use the PyTorch that is measured run in the first environment alone.
Needs of_levels(const std::vector<Level>& levels, const std::string& python,
                const std::vector<plan::NamedPython>& named, const std::string& device) {
  Needs needs{.set_up = true, .environments = {}};
  for (const auto& [name, interpreter] : named) needs.environments.push_back({name, interpreter, {}});
  if (named.empty()) needs.environments.push_back({"", python, {}});
  for (std::size_t i = 0; i < needs.environments.size(); ++i) {
    auto& programs = needs.environments[i].programs;
    for (const auto& level : levels)
      if (i == 0 || level.environment) add_programs(programs, level);
    if (device == "cuda") add(programs, "strata_for_cuda");  // what they need beside their programs
  }
  return needs;
}

}  // namespace

Result<Needs> needs_of(const requests::Request& request) {
  const auto& [options, python] = requests::common_of(request);
  STRATA_TRY(plan::check_alone(options.environments, python));
  auto names = options.levels;
  bool runs_levels = true;
  if (const auto* exported = std::get_if<requests::ExportRequest>(&request)) {
    names = {exported->level};
  } else if (const auto* generate = std::get_if<requests::GenerateRequest>(&request)) {
    names = {"static@measured"};
    runs_levels = generate->tune;
  }
  const auto levels =
      runs_levels ? STRATA_TRY(plan::choose_levels(levels_of(python, options.environments), names, options.device))
                  : std::vector<Level>();
  return of_levels(levels, python, options.environments, runs_levels ? options.device : "");
}

Result<Needs> needs_of(const requests::SuiteRequest& request, const std::string& store) {
  const auto read = STRATA_TRY(read_suite(request, store));
  Needs needs = needs_of_python(request.python);
  for (const auto& entry : read.entries) {
    // one of a device that this machine lacks is not run
    if (entry.device == "cuda" && !there_is("/dev/nvidiactl")) continue;
    const auto of_entry = STRATA_TRY(needs_of(entry.request));
    for (const auto& program : of_entry.environments.front().programs)
      add(needs.environments.front().programs, program);
  }
  return needs;
}

Needs needs_of_any(const std::string& python, const std::vector<plan::NamedPython>& named,
                   const std::vector<std::string>& names) {
  if (names == std::vector<std::string>{"none"}) return needs_of_python(python, false);
  const std::string device = there_is("/dev/nvidiactl") ? "cuda" : "cpu";
  auto levels = levels_of(python, named).levels;
  if (!names.empty())
    std::erase_if(levels, [&](const Level& level) {
      return std::none_of(names.begin(), names.end(),
                          [&](const std::string& name) { return name.substr(0, name.find('@')) == level.id; });
    });
  for (const auto& name : names)
    if (const auto own = level::read(name)) levels.push_back(*own);
  std::erase_if(levels, [&](const Level& level) {
    return std::none_of(level.devices.begin(), level.devices.end(),
                        [&](const std::string& each) { return each == "cpu" || each == device; });
  });
  return of_levels(levels, python, named, device);
}

Needs needs_of_python(const std::string& python, bool set_up) {
  return {.set_up = set_up, .environments = {{"", python, {}}}};
}

Needs needs_of_levels(const std::vector<std::string>& levels) {
  Needs needs = needs_of_python("");
  const auto installed = level::installed_levels(installation()).levels;
  for (const auto& name : levels) {
    if (const auto own = level::read(name)) add_programs(needs.environments.front().programs, *own);
    for (const auto& level : installed)
      if (level.id == name.substr(0, name.find('@'))) add_programs(needs.environments.front().programs, level);
  }
  return needs;
}

nlohmann::json to_json(const Needs& needs) {
  auto all = nlohmann::json::array();
  for (const auto& [name, python, programs] : needs.environments)
    all.push_back({{"name", name}, {"python", python}, {"programs", programs}});
  return {{"set_up", needs.set_up}, {"environments", std::move(all)}};
}

}  // namespace strata::engine
