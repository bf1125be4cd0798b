// SPDX-License-Identifier: Apache-2.0
#include "cli/level.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "common/duration.hpp"
#include "common/escape.hpp"
#include "common/interrupt.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "common/scratch_folder.hpp"
#include "core/bundle_info.hpp"
#include "level/conformance.hpp"
#include "level/level.hpp"
#include "level/own_environment.hpp"
#include "level/skeleton.hpp"
#include "level/tiny_bundle.hpp"
#include "plan/install.hpp"
#include "plan/jobs.hpp"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct CheckOptions {
  std::string path, bundle;
  std::vector<std::string> arguments;
  std::string timeout = "60s";
};

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
  const auto discovered = level::discover(level::search_path(place.root));
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

Result<level::Subject> make_subject(const CheckOptions& options, const Installation& place, const fs::path& scratch) {
  auto level = find_level(options.path, place);
  if (!level) return tl::unexpected<Error>(level.error());
  level::Subject subject;
  subject.scratch = scratch;
  subject.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds_of(options.timeout) * 1000));
  subject.bundle = options.bundle.empty() ? scratch / "bundle" : fs::absolute(options.bundle);
  if (options.bundle.empty()) {
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
  bare.folder = fs::absolute(fs::path(options.path)).parent_path();
  const level::Level& known = *level ? **level : bare;
  plan::install_environments({known}, {known.id}, place);
  if (const auto why = level::own_environment_missing(known, places)) return tl::unexpected(*why);
  subject.launch.argv = *level ? level::expand(known.start, known, places)
                               : std::vector<std::string>{fs::absolute(options.path).string()};
  subject.launch.argv.insert(subject.launch.argv.end(), options.arguments.begin(), options.arguments.end());
  subject.launch.env = level::environment(known, places, 1, scratch / "cache");
  subject.launch.env["STRATA_OVERLAY"] = place.overlay;
  subject.launch.env["STRATA_ROOT"] = place.root.string();
  subject.launch.env["TMPDIR"] = scratch.string();
  subject.launch.log_path = (scratch / "log").string();
  subject.prepare = level::expand(known.prepare, known, places);
  subject.level = *level;
  return subject;
}

void print_check(const level::Check& check) {
  const char* mark = check.verdict == level::Verdict::pass   ? "pass"
                     : check.verdict == level::Verdict::fail ? "FAIL"
                                                             : "skip";
  answer(fmt::format("{}  {}{}{}\n", mark, check.name, check.why.empty() ? "" : ": ", check.why));
  std::fflush(stdout);
}

int run_check(const CheckOptions& options) {
  const ScratchFolder scratch("check");
  if (scratch.path().empty())
    return print_error({"cannot make a temporary folder", "set TMPDIR to a folder with space", Exit::environment});
  const auto subject = make_subject(options, installation(), scratch.path());
  if (!subject) return print_error(subject.error());
  answer(fmt::format("checking {}\n", fmt::join(subject->launch.argv, " ")));
  const auto checks = level::check_conformance(*subject, print_check);
  std::map<level::Verdict, int> counts;
  for (const auto& check : checks) ++counts[check.verdict];
  answer(fmt::format("{} passed, {} failed, {} skipped\n", counts[level::Verdict::pass], counts[level::Verdict::fail],
                     counts[level::Verdict::skip]));
  if (interrupted().load()) return print_error({"interrupted: the checks above are not all", "", Exit::failed});
  return counts[level::Verdict::fail] == 0 ? 0 : static_cast<int>(Exit::failed);
}

// The environments that levels bring: what `compare --levels` does on first use.
int run_install(const std::vector<std::string>& names) {
  const auto place = installation();
  const auto chosen = plan::choose_levels(level::discover(level::search_path(place.root)), names);
  if (!chosen) {
    auto error = chosen.error();
    if (const std::string option = "--levels: "; error.what.starts_with(option)) error.what.erase(0, option.size());
    return print_error(error);
  }
  plan::install_environments(*chosen, names, place);
  if (interrupted().load()) return interrupt_exit_code();
  const auto places = plan::places_of(place);
  int code = 0;
  for (const auto& level : *chosen) {
    if (const auto why = level::own_environment_missing(level, places))
      code = print_error({level.id + ": " + why->what, why->hint, Exit::environment});
    else if (level::has_own_environment(level))
      answer(fmt::format("{}: installed in {}\n", level.id, level::own_environment(level, places).string()));
    else
      answer(fmt::format("{}: brings no environment of its own\n", level.id));
  }
  return code;
}

int run_new(level::Skeleton skeleton) {
  const auto place = installation();
  skeleton.root = place.root;
  if (skeleton.parent.empty()) skeleton.parent = place.root / "levels";
  for (const auto& level : level::discover(level::search_path(place.root)).levels)
    if (level.id == skeleton.id)  // of two levels with one id the second is left out (W006)
      return print_error({fmt::format("there is a level {} already, in {}", level.id, level.folder.string()),
                          "choose another name", Exit::usage});
  const auto written = level::write_skeleton(skeleton);
  if (!written) return print_error(written.error());
  for (const auto& file : *written) answer(fmt::format("wrote {}\n", escape::shell_word(file.string())));
  const fs::path folder = written->front().parent_path();
  const bool inside = folder.parent_path() == place.root / "levels";
  if (skeleton.language == "c++" && !inside)
    answer(fmt::format("build it: cmake -S {0} -B {0}/build -G Ninja -DSTRATA_ROOT={1} && ninja -C {0}/build\n",
                       escape::shell_word(folder.string()), escape::shell_word(place.root.string())));
  if (skeleton.language == "c++" && inside)
    answer(fmt::format("build it: ninja -C {0} (after cmake -S {1} -B {0})\n",
                       escape::shell_word(place.level_build.string()),
                       escape::shell_word((place.root / "levels").string())));
  answer(fmt::format("check it: ./strata level check {}\n", escape::shell_word(folder.string())));
  if (!inside)
    answer(fmt::format("use it:   STRATA_LEVEL_PATH={} ./strata list levels\n",
                       escape::shell_word(folder.parent_path().string())));
  return 0;
}

}  // namespace

void add_level_verbs(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("level", "write a new level, or check one against the worker protocol");
  verb->require_subcommand(1);

  const auto skeleton = std::make_shared<level::Skeleton>();
  CLI::App* make = verb->add_subcommand("new", "write the skeleton of a level: level.json, source, README");
  make->add_option("name", skeleton->id, "its id: a-z, 0-9 and _")->required();
  make->add_option("--language", skeleton->language, "of the source")->required()->type_name("{c++,python}");
  make->add_option("--into", skeleton->parent, "the folder to make it in (default: strata's levels/)")
      ->type_name("PATH");
  make->footer("Exit codes: 0 written; 1 could not be written; 2 wrong usage.");
  make->callback([skeleton, &exit_code] { exit_code = run_new(*skeleton); });

  const auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* install =
      verb->add_subcommand("install", "install the environments of levels (compare --levels does it, too)");
  install->add_option("level", *names, "ids of levels")->required();
  install->footer("Exit codes: 0 all are there; 2 wrong usage; 3 one could not be installed.");
  install->callback([names, &exit_code] { exit_code = run_install(*names); });

  const auto options = std::make_shared<CheckOptions>();
  CLI::App* check = verb->add_subcommand(
      "check", "run the protocol's conformance suite (docs/protocol.md) on a level or any program");
  check->add_option("path", options->path, "a level's folder, its id, or any program")->required();
  check->add_option("arguments", options->arguments, "after --: arguments for the program");
  check->add_option("--bundle", options->bundle, "check with this bundle (default: a tiny network of the suite's own)")
      ->type_name("PATH");
  duration(check
               ->add_option("--timeout", options->timeout,
                            "longest time that one request may take (load: ten times as long)")
               ->capture_default_str());
  check->footer(
      "Exit codes: 0 every check passed; 1 one failed; 2 wrong usage; 3 the environment lacks what is needed.");
  check->callback([options, &exit_code] { exit_code = run_check(*options); });
}

}  // namespace strata::cli
