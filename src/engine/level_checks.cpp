// SPDX-License-Identifier: Apache-2.0
// What each level lacks on this machine (installed.hpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/installed.hpp"
#include "level/installed_levels.hpp"
#include "level/own_environment.hpp"
#include "plan/availability.hpp"
#include "plan/environment.hpp"
#include "plan/jobs.hpp"
#include "probe/gpu.hpp"

namespace strata::engine {
namespace {

using probe::Check;
using probe::Checks;
using probe::Standing;

// Which PyTorch is measured where several are reachable.
Check hidden_torch(const plan::Environment& environment) {
  return {.group = "levels",
          .name = "PyTorch",
          .standing = Standing::limited,
          .found = environment.torch_version,
          .reason = fmt::format("{} reaches another, too, which is not measured: {}", environment.python,
                                fmt::join(environment.other_torch, ", ")),
          .remedy =
              "remove the one that you do not mean (pip uninstall torch, a .pth file, an entry of PYTHONPATH), or "
              "name another interpreter with --python PATH"};
}

// strata's own environment is read from its files; another interpreter may keep its packages anywhere and is asked.
plan::Interpreter interpreter_of(const std::string& python, const Installation& place,
                                 const std::vector<level::Level>& levels, Checks& checks) {
  plan::Interpreter result{.python = python, .own = python == place.tools_python && !probe::is_package(place)};
  if (result.own) {
    const auto site = probe::site_packages(python);
    if (site.empty()) result.why_not = "strata's own environment is not set up";
    result.has = [site](const std::string& module) {
      return !site.empty() && (there_is(site / module) || there_is(site / (module + ".py")));
    };
    const auto packages = probe::installed_packages(site);
    if (const auto torch = packages.find("torch"); torch != packages.end()) result.torch = torch->second;
    return result;
  }
  std::vector<std::string> modules;
  for (const auto& level : levels) modules.insert(modules.end(), level.needs.begin(), level.needs.end());
  const auto answer = plan::ask_environment(python, place, modules);
  if (!answer) {
    result.why_not = answer.error().what;
    return result;
  }
  result.torch = answer->torch_version;
  if (!answer->other_torch.empty()) checks.push_back(hidden_torch(*answer));
  result.has = [missing = answer->missing](const std::string& module) {
    return std::find(missing.begin(), missing.end(), module) == missing.end();
  };
  return result;
}

Check level_check(const level::Level& level, const plan::Interpreter& measured, const plan::Interpreter& tools,
                  const Installation& place, bool gpu) {
  Check check{.group = "levels", .name = level.id, .standing = Standing::ok};
  const auto unavailable = [&](const std::string& reason, const std::string& remedy) {
    check.standing = Standing::missing;
    check.reason = reason;
    check.remedy = remedy;
    return check;
  };
  if (const auto why = plan::why_unavailable(level, measured, tools, place)) return unavailable(why->what, why->hint);
  for (const auto& device : level.devices) {
    if (device != "cuda" || gpu) check.found += (check.found.empty() ? "" : ", ") + device;
  }
  if (check.found.empty())
    return unavailable("it runs only on a GPU, and there is none",
                       "run it where there is an NVIDIA GPU with its driver; comparisons on a CPU leave it out");
  if (!level.distribution.empty()) check.found += fmt::format(", of the distribution {}", level.distribution);
  if (level::has_own_environment(level))
    check.found += fmt::format(", in {}", level::own_environment(level, plan::places_of(place)).string());
  return check;
}

}  // namespace

Checks level_checks(const Installation& place) {
  const auto discovered = level::installed_levels(place);
  Checks checks, of_tools;
  const auto environment = interpreter_of(place.python, place, discovered.levels, checks);
  const auto tools = place.python == place.tools_python
                         ? environment
                         : interpreter_of(place.tools_python, place, discovered.levels, of_tools);
  const bool gpu = probe::gpus().available;
  for (const auto& level : discovered.levels) checks.push_back(level_check(level, environment, tools, place, gpu));
  for (const auto& problem : discovered.problems) {
    checks.push_back({.group = "levels",
                      .name = problem.where.filename().string(),
                      .standing = Standing::missing,
                      .reason = problem.error.what,
                      .remedy = problem.error.hint});
  }
  return checks;
}

}  // namespace strata::engine
