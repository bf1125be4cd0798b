// SPDX-License-Identifier: Apache-2.0
// `strata level new` (writes a skeleton) and `strata level check` (the protocol's conformance suite).
#include "level/level.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/duration.hpp"
#include "common/escape.hpp"
#include "common/interrupt.hpp"
#include "common/places.hpp"
#include "common/scratch_folder.hpp"
#include "engine/level_subject.hpp"
#include "level/conformance.hpp"
#include "level/installed_levels.hpp"
#include "level/own_environment.hpp"
#include "level/skeleton.hpp"
#include "plan/install.hpp"
#include "plan/jobs.hpp"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

struct CheckOptions : engine::LevelToCheck {
  std::string longest = "60s";
};

void print_check(const level::Check& check) {
  const char* mark = check.verdict == level::Verdict::pass   ? "pass"
                     : check.verdict == level::Verdict::fail ? "FAIL"
                                                             : "skip";
  answer(fmt::format("{}  {}{}{}\n", mark, check.name, check.why.empty() ? "" : ": ", check.why));
  std::fflush(stdout);
}

Result<int> run_check(CheckOptions options) {
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds_of(options.longest) * 1000));
  const ScratchFolder scratch("check");
  if (scratch.path().empty())
    return fail("cannot make a temporary folder", "set TMPDIR to a folder with space", Exit::environment);
  const auto subject = STRATA_TRY(engine::subject_of(options, installation(), scratch.path()));
  answer(fmt::format("checking {}\n", fmt::join(subject.launch.argv, " ")));
  const auto checks = level::check_conformance(subject, print_check);
  std::map<level::Verdict, int> counts;
  for (const auto& check : checks) ++counts[check.verdict];
  answer(fmt::format("{} passed, {} failed, {} skipped\n", counts[level::Verdict::pass], counts[level::Verdict::fail],
                     counts[level::Verdict::skip]));
  if (interrupted()) return fail("interrupted: the checks above are not all");
  return counts[level::Verdict::fail] == 0 ? 0 : static_cast<int>(Exit::failed);
}

// The environments that levels bring: what `compare --levels` does on first use.
Result<int> run_install(const std::vector<std::string>& names) {
  const auto place = installation();
  auto chosen = plan::choose_levels(level::installed_levels(place), names);
  if (const std::string option = "--levels: "; !chosen && chosen.error().what.starts_with(option))
    chosen.error().what.erase(0, option.size());
  const auto levels = STRATA_TRY(chosen);
  plan::install_environments(levels, names, place);
  if (interrupted()) return interrupt_exit_code();
  const auto places = plan::places_of(place);
  int code = 0;
  for (const auto& level : levels) {
    if (const auto why = level::own_environment_missing(level, places))
      code = print_error({level.id + ": " + why->what, why->hint, Exit::environment});
    else if (level::has_own_environment(level))
      answer(fmt::format("{}: installed in {}\n", level.id, level::own_environment(level, places).string()));
    else
      answer(fmt::format("{}: brings no environment of its own\n", level.id));
  }
  return code;
}

Result<int> run_new(level::Skeleton skeleton) {
  const auto place = installation();
  skeleton.root = place.root;
  if (skeleton.parent.empty()) skeleton.parent = place.root / "levels";
  for (const auto& level : level::installed_levels(place).levels)
    if (level.id == skeleton.id)  // of two levels with one id the second is left out (W006)
      return fail(fmt::format("there is a level {} already, in {}", level.id, level.folder.string()),
                  "choose another name", Exit::usage);
  const auto written = STRATA_TRY(level::write_skeleton(skeleton));
  for (const auto& file : written) answer(fmt::format("wrote {}\n", escape::shell_word(file.string())));
  const fs::path folder = written.front().parent_path();
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
  set_action(*make, exit_code, [skeleton] { return run_new(*skeleton); });

  const auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* install =
      verb->add_subcommand("install", "install the environments of levels (compare --levels does it, too)");
  install->add_option("level", *names, "ids of levels")->required();
  install->footer("Exit codes: 0 all are there; 2 wrong usage; 3 one could not be installed.");
  set_action(
      *install, exit_code, [names] { return run_install(*names); },
      [names] { return engine::needs_of_levels(*names); });

  const auto options = std::make_shared<CheckOptions>();
  CLI::App* check = verb->add_subcommand(
      "check", "run the protocol's conformance suite (docs/protocol.md) on a level or any program");
  check->add_option("path", options->path, "a level's folder, its id, or any program")->required();
  check->add_option("arguments", options->arguments, "after --: arguments for the program");
  check->add_option("--bundle", options->bundle, "check with this bundle (default: a tiny network of the suite's own)")
      ->type_name("PATH");
  duration(check
               ->add_option("--timeout", options->longest,
                            "longest time that one request may take (load: ten times as long)")
               ->capture_default_str());
  check->footer(
      "Exit codes: 0 every check passed; 1 one failed; 2 wrong usage; 3 the environment lacks what is needed.");
  set_action(
      *check, exit_code, [options] { return run_check(*options); },
      [options] { return engine::needs_of_levels({options->path}); });
}

}  // namespace strata::cli
