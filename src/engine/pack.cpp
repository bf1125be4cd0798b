// SPDX-License-Identifier: Apache-2.0
#include "engine/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "level/installed_levels.hpp"
#include "level/own_environment.hpp"
#include "plan/jobs.hpp"
#include "requests/codec.hpp"

namespace strata::engine {
namespace {

using level::Level;

// Each once, whichever of its variants are named; eager with them, which others are compared with.
Result<std::vector<Level>> packed_levels(const requests::PackRequest& request, const Installation& place) {
  auto names = request.levels;
  for (auto& name : names) name = name.substr(0, name.find('@'));
  if (!names.empty()) names.emplace_back("eager");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  auto levels = STRATA_TRY(plan::choose_levels(level::installed_levels(place), names, request.device));
  for (const auto& each : levels)
    if (!names.empty() && level::has_own_environment(each))
      return fail(fmt::format("--levels: {} brings a Python environment of its own, which a pack cannot hold", each.id),
                  fmt::format("leave {} out", each.id), Exit::usage);
  std::erase_if(levels, level::has_own_environment);
  return levels;
}

}  // namespace

Result<Needs> needs_of(const requests::PackRequest& request) {
  std::vector<std::string> ids;
  for (const auto& level : STRATA_TRY(packed_levels(request, installation()))) ids.push_back(level.id);
  auto needs = needs_of_levels(ids);
  needs.environments.front().python = request.python;
  if (request.device == "cuda") needs.environments.front().programs.emplace_back("strata_for_cuda");
  return needs;
}

Result<nlohmann::json> pack_order(const requests::PackRequest& request, const Installation& place) {
  if (std::getenv("STRATA_PACK") != nullptr)
    return fail("this strata is a pack itself, which lacks what a pack is made of",
                "copy its folder, or make another where strata is installed", Exit::environment);
  auto levels = nlohmann::json::array();
  for (const auto& level : STRATA_TRY(packed_levels(request, place)))
    levels.push_back({{"id", level.id},
                      {"folder", level.folder.string()},
                      {"needs", level.needs},
                      {"programs", needs_of_levels({level.id}).environments.front().programs}});
  std::error_code ec;
  return nlohmann::json{{"request", requests::to_json(request)},
                        {"levels", std::move(levels)},
                        {"installation",
                         {{"driver", std::filesystem::read_symlink("/proc/self/exe", ec).string()},
                          {"root", place.root.string()},
                          {"python", place.python},
                          {"level_build", place.level_build.string()},
                          {"overlay", place.overlay}}}};
}

}  // namespace strata::engine
