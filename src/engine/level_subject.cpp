// SPDX-License-Identifier: Apache-2.0
#include "engine/level_subject.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "core/bundle_info.hpp"
#include "level/installed_levels.hpp"
#include "level/level.hpp"
#include "level/own_environment.hpp"
#include "plan/install.hpp"
#include "plan/jobs.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// A folder with level.json, or the id of a level that is found; nullopt: `path` is a program. Error: it is nothing.
Result<std::optional<level::Level>> find_level(const std::string& path, const Installation& place) {
  std::error_code error;
  if (fs::is_regular_file(path, error) && fs::path(path).filename() != "level.json")
    return std::optional<level::Level>();
  if (fs::exists(path, error)) {
    auto level = level::read(fs::is_directory(path, error) ? fs::path(path) : fs::path(path).parent_path());
    if (!level) return tl::unexpected<Error>(level.error());
    return std::optional<level::Level>(std::move(*level));
  }
  const auto discovered = level::installed_levels(place);
  std::vector<std::string> ids;
  for (const auto& level : discovered.levels) {
    if (level.id == path) return std::optional<level::Level>(level);
    ids.push_back(level.id);
  }
  for (const auto& problem : discovered.problems)
    if (problem.where.parent_path().filename() == path) return tl::unexpected<Error>(problem.error);
  const auto meant = nearest(path, ids);
  return fail(fmt::format("{} is neither a folder with level.json, nor a program, nor a level; levels are: {}", path,
                          fmt::join(ids, ", ")),
              meant ? fmt::format("did you mean {}?", *meant) : "", Exit::usage);
}

// The parts of bundle.json that the checks rely on.
Result<void> check_bundle(const fs::path& folder) {
  const auto question = core::case_in(folder);
  const auto bundle = core::read_bundle_info(folder, true).value_or(Json());
  if (question && question->mode != core::Mode::infer)
    return fail(fmt::format("{} is a bundle of mode {}, and the checks are of inference", folder.string(),
                            name_of(question->mode)),
                "capture the network with mode infer; `strata compare --mode train` proves how a level trains",
                Exit::usage);
  const bool good = question && bundle.contains("parameters") && outside::integer_or(bundle, "ring") >= 2;
  return good ? Result<void>()
              : fail(fmt::format("{} holds no bundle.json with case, outputs, parameters and a ring of 2 or more",
                                 folder.string()),
                     "leave --bundle out for a network of the suite's own, or name a folder below `bundles` of the "
                     "cache, where ./strata compare stores what it captured (docs/bundle.md describes it)",
                     Exit::usage);
}

}  // namespace

Result<level::Subject> subject_of(const LevelToCheck& asked, const Installation& place, const fs::path& scratch) {
  auto level = find_level(asked.path, place);
  if (!level) return tl::unexpected<Error>(level.error());
  level::Subject subject;
  subject.scratch = scratch;
  subject.timeout = asked.timeout;
  subject.bundle = asked.bundle.empty() ? scratch / "bundle" : fs::absolute(asked.bundle);
  if (asked.bundle.empty()) {
    const fs::path module = place.root / "examples" / "tiny_mlp.py";
    if (auto written =
            level::write_tiny_bundle(subject.bundle, fs::exists(module) ? module.string() + ":build" : "tiny_mlp");
        !written)
      return tl::unexpected<Error>(written.error());
  }
  if (auto good = check_bundle(subject.bundle); !good) return tl::unexpected<Error>(good.error());
  const level::Places places = {.python = place.python,
                                .tools_python = place.tools_python,
                                .build = place.level_build.string(),
                                .root = place.root.string()};
  level::Level bare;  // a program without level.json
  bare.folder = fs::absolute(fs::path(asked.path)).parent_path();
  const level::Level& known = *level ? **level : bare;
  plan::install_environments({known}, {known.id}, place);
  if (const auto why = level::own_environment_missing(known, places)) return tl::unexpected(*why);
  subject.launch.argv =
      *level ? level::expand(known.start, known, places) : std::vector<std::string>{fs::absolute(asked.path).string()};
  subject.launch.argv.insert(subject.launch.argv.end(), asked.arguments.begin(), asked.arguments.end());
  subject.launch.env = level::environment(known, places, 1, scratch / "cache");
  subject.launch.env["STRATA_OVERLAY"] = place.overlay;
  subject.launch.env["STRATA_ROOT"] = place.root.string();
  subject.launch.env["TMPDIR"] = scratch.string();
  subject.launch.log_path = (scratch / "log").string();
  subject.prepare = level::expand(known.prepare, known, places);
  subject.level = *level;
  return subject;
}

}  // namespace strata::engine
