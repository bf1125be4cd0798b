// SPDX-License-Identifier: Apache-2.0
// `strata doctor`: what this machine can measure and what not, each with reason and remedy. Changes nothing.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/places.hpp"
#include "engine/installed.hpp"
#include "probe/checks.hpp"
#include "probe/machine.hpp"

namespace strata::cli {
namespace {

using probe::Check;
using probe::Checks;
using probe::Standing;

void print_text(const Checks& checks) {
  std::size_t width = 0;
  for (const auto& check : checks) width = std::max(width, check.name.size());
  std::string group;
  for (const auto& check : checks) {
    if (check.group != group) answer(fmt::format("{}{}\n", group.empty() ? "" : "\n", group = check.group));
    const auto detail =
        check.found.empty() || check.reason.empty() ? check.found + check.reason : check.found + ": " + check.reason;
    answer(fmt::format("  {:{}}  {:7}  {}\n", check.name, width, probe::to_string(check.standing), detail));
    if (!check.remedy.empty()) answer(fmt::format("  {:{}}           -> {}\n", "", width, check.remedy));
  }
}

void print_json(const Checks& checks) {
  nlohmann::json out = {
      {"schema", "strata.doctor/1"}, {"machine", probe::machine()}, {"checks", nlohmann::json::array()}};
  for (const auto& check : checks) {
    out["checks"].push_back({{"group", check.group},
                             {"name", check.name},
                             {"standing", probe::to_string(check.standing)},
                             {"found", check.found},
                             {"reason", check.reason},
                             {"remedy", check.remedy}});
  }
  answer_json(out, 1);
}

Result<int> doctor(const std::string& format_name) {
  const auto format = STRATA_TRY(format_option(format_name));
  const auto place = installation();
  Checks checks = probe::machine_checks(std::chrono::milliseconds(500));
  for (auto& more : {probe::software_checks(place, engine::packages_of(place)), engine::level_checks(place),
                     probe::set_up_checks(place)})
    checks.insert(checks.end(), more.begin(), more.end());
  if (format == report::Format::text) {
    print_text(checks);
  } else if (format == report::Format::json) {
    print_json(checks);
  } else {
    std::vector<report::Cells> rows;
    for (const auto& c : checks)
      rows.push_back({c.group, c.name, std::string(probe::to_string(c.standing)), c.found, c.reason, c.remedy});
    answer(report::table({"group", "name", "standing", "found", "reason", "remedy"}, rows, format));
  }
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  struct DoctorArguments {
    std::string format = "text", python, store;
    bool calibrate = false;
  };
  auto arguments = std::make_shared<DoctorArguments>();
  auto* verb = app.add_subcommand("doctor", "what this machine can measure and what not, each with reason and remedy");
  auto* format = format_choice(verb->add_option("--format", arguments->format, "of the answer"));
  verb->add_option("--python", arguments->python,
                   "the interpreter whose PyTorch is measured (default: STRATA_PYTHON, else strata's own)")
      ->type_name("PATH");
  auto* calibrate =
      verb->add_flag("--calibrate", arguments->calibrate,
                     "measure this machine's process effect and store it (about 4 minutes on an idle machine)");
  calibrate->excludes(format);
  add_store(*verb, arguments->store)->needs(calibrate);
  verb->footer(
      "Exit codes: 0 reported, whatever it found; 2 wrong usage; with --calibrate also 1 the measurement failed, 3 the "
      "machine is busy or the environment lacks what is needed.");
  set_action(
      *verb, exit_code,
      [arguments] {
        // the launcher has resolved it already
        if (!arguments->python.empty() && !std::getenv("STRATA_ROOT"))
          setenv("STRATA_PYTHON", arguments->python.c_str(), 1);
        return arguments->calibrate ? run_calibration(arguments->store) : doctor(arguments->format);
      },
      [arguments] { return engine::needs_of_python(arguments->python, arguments->calibrate); });
}

}  // namespace strata::cli
