// SPDX-License-Identifier: Apache-2.0
#include "engine/installed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "common/outside.hpp"
#include "common/python.hpp"
#include "level/installed_levels.hpp"
#include "level/own_environment.hpp"
#include "plan/availability.hpp"
#include "plan/environment.hpp"
#include "plan/jobs.hpp"
#include "worker/worker.hpp"

namespace strata::engine {
namespace fs = std::filesystem;

std::string state_of(const level::Level& level, const Installation& place) {
  const auto missing = plan::missing_files(level, place);
  if (!missing) return "ready";
  if (missing->reason == plan::UnavailableReason::left_out) return "left out: strata doctor says why";
  if (missing->reason == plan::UnavailableReason::program) return "built on first use";
  return fmt::format("environment not installed: ./strata level install {}", level.id);
}

// "timm:NAME?OPTION=VALUE&..." for each package whose models have names.
std::vector<KnownModel> package_models(const fs::path& root) {
  std::vector<KnownModel> all;
  const auto packages = outside::read_file(root / "models/packages.json");
  if (!packages || !packages->is_array()) return all;
  for (const auto& about : *packages)
    all.push_back({outside::text_or(about, "scheme") + ":NAME?OPTION=VALUE&...", "package",
                   outside::text_or(about, "title") + ", as " + outside::text_or(about, "example")});
  return all;
}

KnownModels known_models(const Installation& place) {
  KnownModels known;
  known.packages = package_models(place.root);
  std::error_code ec;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(place.root / "models", ec))
    if (there_is(entry.path() / "model.json")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> shipped;
  for (const auto& folder : folders) {
    const auto model = outside::read_file(folder / "model.json");
    if (!model) continue;
    outside::Fields about(*model, (folder / "model.json").string());
    for (const auto& name : about.texts("names", {folder.filename().string()})) {
      shipped.push_back(name);
      known.models.push_back({name, "shipped", outside::text_or(*model, "title", outside::text_or(*model, "about"))});
    }
  }
  worker::Launch launch;
  launch.argv = python_command(place.python, place.root,
                               {"-c", "import torchvision.models as m\nfor n in m.list_models(module=m): print(n)"});
  launch.env = python_variables({});
  if (const auto ran = worker::run_to_end(launch, std::chrono::seconds(60)); ran && ran->exit_code == 0) {
    std::istringstream names(ran->stdout_text);
    for (std::string name; std::getline(names, name);)
      if (std::find(shipped.begin(), shipped.end(), name) == shipped.end())
        known.models.push_back({name, "torchvision", ""});
    known.torchvision = true;
  }
  return known;
}

Result<ModelsOfLevel> models_of_level(const std::string& name, const Installation& place) {
  auto chosen = plan::choose_levels(level::installed_levels(place), {name});
  if (!chosen) {
    auto error = chosen.error();
    if (const std::string other = "--levels:"; error.what.starts_with(other))
      error.what.replace(0, other.size(), "--level:");
    return tl::unexpected(std::move(error));
  }
  if (chosen->size() != 1) return fail(fmt::format("--level {}: name one level", name), "", Exit::usage);
  const auto recorded = STRATA_TRY(plan::recorded_operations(place.root));
  auto known = known_models(place);
  ModelsOfLevel result{.level = std::move(chosen->front()),
                       .models = {},
                       .torchvision = known.torchvision,
                       .torch = {},
                       .torchvision_version = {}};
  for (auto& model : known.models) {
    auto infer = plan::supports(result.level, model.name, "infer", recorded);
    auto train = plan::supports(result.level, model.name, "train", recorded);
    result.models.push_back({std::move(model), std::move(infer), std::move(train)});
  }
  if (!result.level.operations.empty()) {
    result.torch = recorded.torch;
    result.torchvision_version = recorded.torchvision;
  }
  return result;
}

std::map<std::string, std::string> packages_of(const Installation& place) {
  if (!probe::is_package(place)) return probe::installed_packages(probe::site_packages(place.tools_python));
  std::map<std::string, std::string> packages;
  const auto asked = plan::ask_environment(place.tools_python, place, {}, plan::EnvironmentDetail::packages);
  if (!asked || !asked->packages.is_object()) return packages;
  for (const auto& [name, version] : asked->packages.items())
    packages[probe::normal_name(name)] = version.is_string() ? version.get<std::string>() : "";
  return packages;
}

fs::path folder_of_module(const std::string& module, const Installation& place) {
  worker::Launch launch;
  launch.argv = python_command(place.tools_python, place.root,
                               {"-c",
                                "import importlib.util as u, sys\nspec = u.find_spec(sys.argv[1])\n"
                                "print(spec.submodule_search_locations[0] if spec else '')",
                                module});
  launch.env = python_variables({});
  const auto ran = worker::run_to_end(launch, std::chrono::seconds(60));
  if (!ran || ran->exit_code != 0) return {};
  return ran->stdout_text.substr(0, ran->stdout_text.find('\n'));
}

std::vector<KnownEnvironment> known_environments(const Installation& place) {
  const auto places = plan::places_of(place);
  std::vector<KnownEnvironment> known, missing;
  std::vector<std::pair<std::string, std::string>> interpreters{
      {"default", probe::is_package(place) ? place.tools_python : (place.root / ".venv/bin/python").string()}};
  if (place.python != interpreters.front().second) interpreters.emplace_back("named", place.python);
  for (const auto& level : level::installed_levels(place).levels) {
    if (!level::has_own_environment(level)) continue;
    const auto python = (level::own_environment(level, places) / "bin" / "python").string();
    if (const auto why = level::own_environment_missing(level, places))
      missing.push_back({level.id, python, "-", "-", fmt::format("{}; {}", why->what, why->hint)});
    else
      interpreters.emplace_back(level.id, python);
  }
  for (const auto& [name, python] : interpreters) {
    const auto environment = plan::ask_environment(python, place, {});
    known.push_back({name, python, environment ? environment->python_version : "-",
                     environment ? (environment->torch_version.empty() ? "none" : environment->torch_version) : "-",
                     environment ? "" : environment.error().what});
  }
  known.insert(known.end(), missing.begin(), missing.end());
  return known;
}

}  // namespace strata::engine
