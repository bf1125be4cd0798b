// SPDX-License-Identifier: Apache-2.0
#include "engine/export_runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/interrupt.hpp"
#include "common/nearest.hpp"
#include "engine/artefact.hpp"
#include "engine/package_versions.hpp"
#include "export/write.hpp"
#include "level/installed_levels.hpp"
#include "plan/model_file.hpp"
#include "requests/commands.hpp"
#include "store/store.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// The command that writes the level's program; "" if there is none for this network.
std::string program_of(const level::Level& level, const core::CaseSpec& spec, const std::string& python) {
  const auto target = level.generate.find(std::string(name_of(spec.device)));
  if (target == level.generate.end()) return "";
  // "m/net.py:build" is called "net:build", as its capture would be
  const auto file = fs::path(spec.model).filename().string();
  const auto colon = std::min(file.rfind(':'), file.size());
  const auto model = fs::path(file.substr(0, colon)).stem().string() + file.substr(colon);
  return requests::generate_command(spec, model, {level.id, target->second, level.generate_options}, python);
}

// Why a level has no artefact, and what to take instead.
Error no_artefact(const level::Level& level, const level::DiscoveredLevels& installed, const core::CaseSpec& spec,
                  const std::string& python) {
  if (const auto command = program_of(level, spec, python); !command.empty())
    return {fmt::format("level {} ({}) is exported by another command: it is a program of its own", level.name(),
                        level.title),
            command, Exit::usage};
  std::vector<std::string> shipping;
  std::string closest;
  for (const auto& other : installed.levels) {
    if (!level::ships(other)) continue;
    shipping.push_back(other.id);
    if (other.from == level.id && !other.peer && closest.empty())
      closest = fmt::format("{} ({}); all of them: ", other.id, other.changes);
  }
  const auto why =
      level.harness             ? std::string("it runs no network")
      : !level.prepare.empty()  ? fmt::format("its folder {} holds no export/export.json", level.folder.string())
      : level.language == "c++" ? fmt::format("its network is a hand-written program, {}", level.folder.string())
                                : std::string("it runs the Python module itself, and your own code already is that");
  return {fmt::format("level {} ({}) has no artefact that could be shipped: {}", level.id, level.title, why),
          shipping.empty() ? std::string() : fmt::format("--level {}{}", closest, fmt::join(shipping, ", ")),
          Exit::usage};
}

Result<level::Level> choose_level(const requests::ExportRequest& a, const Installation& place,
                                  const core::CaseSpec& spec) {
  const auto& name = a.level;
  const auto discovered = level::installed_levels(place);
  std::vector<std::string> known;
  if (name.find('@') != std::string::npos) {
    auto variant = STRATA_TRY(plan::choose_levels(discovered, {name}));
    const auto& chosen = variant.front();
    if (chosen.variant == level::kHugePages)
      return fail(
          fmt::format("--level {}: huge pages are a setting of the process and make no other artefact", name),
          fmt::format("--level {}, and start its program with GLIBC_TUNABLES={}", chosen.id, level::kHugePagesTunable),
          Exit::usage);
    if (!level::ships(chosen)) return tl::unexpected(no_artefact(chosen, discovered, spec, a.python));
    const auto base = std::find_if(discovered.levels.begin(), discovered.levels.end(),
                                   [&](const auto& level) { return level.id == chosen.id; });
    if (base->bakes_weights != chosen.bakes_weights)  // the program that is shipped puts the weights in
      return fail(fmt::format("--level {}: its artefact holds its weights, and the program that serves {} puts them in",
                              name, chosen.id),
                  fmt::format("export {} itself", chosen.id), Exit::usage);
    return chosen;
  }
  for (const auto& level : discovered.levels) {
    known.push_back(level.id);
    if (level.id != name) continue;
    if (!level::ships(level)) return tl::unexpected(no_artefact(level, discovered, spec, a.python));
    return level;
  }
  for (const auto& problem : discovered.problems)  // it is there, but cannot be read
    if (problem.where.parent_path().filename() == name)
      return fail("--level: " + problem.error.what, problem.error.hint, Exit::usage);
  const auto near = nearest(name, known);
  return fail(fmt::format("--level: unknown level '{}'{}; known: {}", name,
                          near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", ")),
              "`strata list levels` describes them", Exit::usage);
}

struct Ready {
  Installation place;
  level::Level level;
  core::CaseSpec spec;
  plan::Environments environments;
};

Result<Ready> get_ready(const requests::ExportRequest& a) {
  Ready ready;
  ready.place = installation();
  if (!a.python.empty()) ready.place.python = a.python;
  auto options = a.options;
  auto spec = STRATA_TRY(plan::spec_of(options));
  ready.level = STRATA_TRY(choose_level(a, ready.place, spec));
  if (options.precision != "fp32")
    return fail(fmt::format("--precision {}: artefacts are exported in fp32 only", options.precision), "leave it out",
                Exit::usage);
  ready.spec = std::move(spec);
  return ready;
}

}  // namespace

Result<Exported> run_export(const requests::ExportRequest& request, const fs::path& store, EventSink& events) {
  plan::limit_files(request.options);
  auto ready = STRATA_TRY(get_ready(request));
  auto draft = STRATA_TRY(exporting::Draft::begin(request.output, request.force));
  ready.environments = STRATA_TRY(plan::ask_environments(ready.place, ready.level.needs));
  if (const auto notice = plan::notice_of(request.options.model); !notice.empty()) events.note(notice);
  const auto bundle = STRATA_TRY(
      plan::get_bundle(ready.spec, ready.place, ready.environments.measured, capture_options(request.options, events)));
  const auto job =
      STRATA_TRY(get_artefact(ready.level, bundle, ready.environments, ready.place, request.options, events));
  const auto recipe = STRATA_TRY(exporting::read_recipe(job, ready.place));
  // eager cannot run an ONNX file, and a level that is named and cannot run ends with exit code 3
  const bool python = bundle.info.at("model").value("kind", "") != "onnx";
  auto levels = python ? std::vector<std::string>{"eager"} : std::vector<std::string>{};
  levels.push_back(ready.level.name());
  Exported done{.folder = draft.place(),
                .build = recipe.build,
                .test = recipe.test,
                .evidence = exporting::find_evidence(store, job),
                .proving = requests::command_of(requests::of_case({}, ready.spec, levels))};
  const auto versions = package_versions(recipe.packages, recipe.python, ready.place.root);
  const exporting::Export exported{.job = job,
                                   .recipe = recipe,
                                   .evidence = done.evidence,
                                   .proving = done.proving,
                                   .python = versions.python,
                                   .versions = versions.packages,
                                   .shared = ready.place.root / "runtime/serve"};
  STRATA_TRY(exporting::write_export(draft, exported));
  if (interrupted()) return fail("interrupted: nothing was written");
  STRATA_TRY(draft.publish());
  return done;
}

}  // namespace strata::engine
