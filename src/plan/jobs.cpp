// SPDX-License-Identifier: Apache-2.0
#include "plan/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/hash.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "common/temporary.hpp"
#include "plan/availability.hpp"
#include "plan/model_file.hpp"
#include "plan/references.hpp"
#include "probe/checks.hpp"
#include "probe/huge_pages.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
using worker::Failure;
namespace {

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// A name for files: "eager", "eager-channels_last".
std::string file_name_of(const level::Level& level) {
  return level.variant == "default" ? level.id : level.id + "-" + level.variant;
}

// Huge pages make no other artefact.
std::string artefact_name_of(const level::Level& level) {
  return level.variant == level::kHugePages ? level.id : file_name_of(level);
}

// What a level's own files are: an artefact made by other code must not be taken for this level's. What its export
// folder holds makes none.
std::string hash_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ec))
    if (entry.is_regular_file(ec) && entry.path().extension() != ".pyc" && entry.path().extension() != ".md" &&
        entry.path().parent_path().filename() != "export")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string all;
  for (const auto& file : files) all += file.filename().string() + sha256_of_file(file).value_or("");
  return sha256_hex(all).substr(0, 12);
}

// `level@variant` of --levels.
Result<level::Level> variant_of(const level::DiscoveredLevels& installed, const std::string& id,
                                const std::string& name) {
  const auto& level = *std::find_if(installed.levels.begin(), installed.levels.end(),
                                    [&](const auto& other) { return other.id == id; });
  std::vector<std::string> known;
  for (const auto& variant : level.variants) {
    if (variant.name == name) return level::as_variant(level, variant);
    known.push_back(variant.name);
  }
  if (has({"tf32", "bf16", "amp-bf16"}, name))
    return fail(fmt::format("--levels {}@{}: {} is a precision, of a case and not of one level", id, name, name),
                fmt::format("use --precision {}, or --precision fp32,{} for both side by side", name, name),
                Exit::usage);
  const auto near = nearest(name, known);
  return fail(known.empty()
                  ? fmt::format("--levels {}@{}: {} has no variants", id, name, id)
                  : fmt::format("--levels {}@{}: unknown variant{}; {} has: {}", id, name,
                                near ? fmt::format(" (did you mean '{}'?)", *near) : "", id, fmt::join(known, ", ")),
              "`strata list levels` describes them", Exit::usage);
}

// What the capture found in the network's answers: no level's could be proven. One whose answers follow the calls
// before is no other level's than that of the module itself.
std::optional<Failure> why_unproven(const level::Level& level, const nlohmann::json& info) {
  const auto why = outside::text_or(info, "unproven");
  if (why.empty() || level.harness) return std::nullopt;
  if (!outside::flag_or(info, "keeps_state", false))
    return Failure{.state = State::unproven,
                   .what = why,
                   .hint =
                       "let the network answer one input in one way, by values that do not lie on a threshold, and "
                       "by more of its weights than rounding moves"};
  return Failure{.state = level.id == "eager" ? State::unproven : State::unsupported,
                 .what = why,
                 .hint =
                     "let forward() begin from the same state in every call, or take the state as an input and "
                     "return it"};
}

// An interpreter that was asked.
Interpreter interpreter_of(const Environment& environment, const Installation& place) {
  return {.python = environment.python,
          .torch = environment.torch_version,
          .why_not = "",
          .has = [&](const std::string& module) { return !has(environment.missing, module); },
          .own = environment.python == place.tools_python && !probe::is_package(place)};
}

}  // namespace

level::Places places_of(const Installation& place) {
  return {.python = place.python,
          .tools_python = place.tools_python,
          .build = place.level_build.string(),
          .root = place.root.string()};
}

Result<std::vector<level::Level>> choose_levels(const level::DiscoveredLevels& installed,
                                                const std::vector<std::string>& names, const std::string& device) {
  std::vector<std::string> known;
  for (const auto& level : installed.levels) known.push_back(level.id);
  if (names.empty()) {
    auto all = installed.levels;
    std::erase_if(all, [&](const level::Level& level) { return !has(level.devices, device); });
    return all;
  }
  std::vector<level::Level> chosen;  // variants; the levels themselves go in front, in their own order
  for (const auto& name : names) {
    const auto at = name.find('@');
    if (at != std::string::npos && has(known, name.substr(0, at))) {
      auto variant = STRATA_TRY(variant_of(installed, name.substr(0, at), name.substr(at + 1)));
      chosen.push_back(std::move(variant));
      continue;
    }
    if (has(known, name)) continue;
    for (const auto& problem : installed.problems)  // it is there, but cannot be read
      if (problem.where.parent_path().filename() == name || problem.where.filename() == name)
        return fail("--levels: " + problem.error.what, problem.error.hint, Exit::usage);
    const auto near = nearest(name, known);
    return fail(fmt::format("--levels: unknown level '{}'{}; known: {}", name,
                            near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", ")),
                "`strata list levels` describes them; STRATA_LEVEL_PATH adds folders of your own", Exit::usage,
                among("--levels", name, known));
  }
  std::vector<level::Level> all;
  for (const auto& level : installed.levels)
    if (has(names, level.id)) all.push_back(level);
  all.insert(all.end(), chosen.begin(), chosen.end());
  return all;
}

std::optional<Failure> cannot_run(const level::Level& level, const Bundle& bundle, const core::Case& question,
                                  const Environment& environment, const Environment& tools, const Installation& place) {
  const std::string device(name_of(question.device)), mode(name_of(question.mode)),
      precision(name_of(question.precision));
  const auto model = bundle.info["model"].value("name", "");
  if (!has(level.modes, mode))
    return Failure{.state = State::unsupported,
                   .what = fmt::format("no mode {}", mode),
                   .hint = fmt::format("it has: {}", fmt::join(level.modes, ", "))};
  if (level.on_data && !(question.recipe && question.recipe->training))
    return Failure{.state = State::unsupported, .what = "it is for trainings on a data set", .hint = "./strata train"};
  if (!has(level.devices, device))
    return Failure{.state = State::unsupported,
                   .what = fmt::format("no device {}", device),
                   .hint = fmt::format("it has: {}", fmt::join(level.devices, ", "))};
  if (precision == "tf32" && device == "cpu")
    return Failure{.state = State::unsupported,
                   .what = "tf32 is a mode of CUDA devices",
                   .hint = "use --device cuda where there is one"};
  if (!has(level.precisions, precision))
    return Failure{.state = State::unsupported,
                   .what = fmt::format("no support for precision {}", precision),
                   .hint = fmt::format("it has: {}", fmt::join(level.precisions, ", "))};
  if (!level.models.empty() && (!has(level.models, model) || bundle.info["model"].value("kind", "") == "user"))
    return Failure{.state = State::unsupported,
                   .what = fmt::format("model {} is not hand-written here", model),
                   .hint = fmt::format("it has: {}", fmt::join(level.models, ", "))};
  if (auto why = why_unproven(level, bundle.info)) return why;
  if (level.variant == level::kHugePages)
    if (const auto why = probe::why_no_huge_pages(probe::huge_pages()))
      return Failure{.state = State::unavailable, .what = why->what, .hint = why->hint};
  const auto why = why_unavailable(level, interpreter_of(environment, place), interpreter_of(tools, place), place);
  if (why) return Failure{.state = State::unavailable, .what = why->what, .hint = why->hint};
  return std::nullopt;
}

Result<Job> make_job(const level::Level& level, const Bundle& bundle, const Installation& place,
                     const Environment& environment, const Options& options, const fs::path& log_folder) {
  Job job;
  job.level = level;
  job.bundle = &bundle;
  const auto places = places_of(place);
  // a prepare program that is built is the level's own as its files are
  std::string maker;
  if (!level.prepare.empty() && level.prepare.front().rfind("{build}", 0) == 0)
    maker = sha256_of_file(level::expand({level.prepare.front()}, level, places).front()).value_or("");
  const auto versions = sha256_hex(environment.python + environment.torch_version + maker).substr(0, 8);
  job.cache = place.cache / "artefacts" /
              fmt::format("{}-{}-{}-{}", artefact_name_of(level), level.bakes_weights ? bundle.key : bundle.structure,
                          hash_folder(level.folder), versions);
  job.scratch = log_folder;
  const int threads = bundle.question.threads;
  job.launch.argv = level::expand(level.start, level, places);
  job.launch.env = level::environment(level, places, threads, job.cache);
  job.launch.env["STRATA_OVERLAY"] = place.overlay;
  job.launch.env["STRATA_ROOT"] = place.root.string();
  auto temporary = STRATA_TRY(temporary_folder(place.cache));
  job.launch.env["TMPDIR"] = std::move(temporary);
  const auto where = level.in_environment.empty() ? "" : "-in-" + level.in_environment;
  job.launch.log_path = (log_folder / (file_name_of(level) + where + ".log")).string();
  if (options.memory_limit_gib)
    job.launch.data_limit_bytes = static_cast<std::uint64_t>(*options.memory_limit_gib * 1024.0 * 1024.0 * 1024.0);
  if (options.timeout_s) job.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*options.timeout_s * 1000));
  job.allow_debug = options.allow_debug;
  std::error_code ec;
  if (!fs::create_directories(log_folder, ec) && ec)
    return fail(fmt::format("cannot make the folder {}: {}", log_folder.string(), ec.message()),
                "free some space, or name another place with --store");
  // what lies there is loaded into processes
  STRATA_TRY(private_tree(job.cache, "set STRATA_CACHE to a folder of your own"));
  fs::last_write_time(job.cache, fs::file_time_type::clock::now(), ec);  // for `strata cache`, if it is there already
  if (is_model_file(outside::text_or(outside::field(bundle.info, "case"), "model"))) {
    STRATA_TRY(confine(job.launch, place, {log_folder, job.cache}));
  }
  job.references_shown = hide_references(job.launch, place);
  return job;
}

}  // namespace strata::plan
