// SPDX-License-Identifier: Apache-2.0
// `strata doctor --calibrate`.
#include "measure/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/warnings.hpp"
#include "cli/console.hpp"
#include "cli/verbs.hpp"
#include "measure/measuring_mark.hpp"
#include "plan/jobs.hpp"
#include "probe/machine.hpp"

namespace strata::cli {
namespace {

constexpr const char* kModel =
    "resnet18";  // about 6 ms at 64 pixels: several iterations a block, kernels that use all threads
constexpr const char* kInput = "1x3x64x64";
constexpr double kSeconds = 35;

Result<store::ProcessEffect> calibrate_threads(int threads, const nlohmann::json& machine, ProgressLine& line) {
  const auto place = installation();
  const auto discovered = level::discover(level::search_path(place.root));
  const auto levels = STRATA_TRY(plan::choose_levels(discovered, {"eager"}));
  const auto environment = STRATA_TRY(plan::ask_environment(place.python, place, levels.front().needs));
  plan::Options options;
  options.model = kModel;
  options.inputs = {kInput};
  options.threads = threads;
  const auto spec = STRATA_TRY(plan::spec_of(options));
  const auto bundle = STRATA_TRY(plan::get_bundle(spec, place, environment, engine::capture_options(options, line)));
  const auto logs = place.cache / "logs" / "calibration";
  const auto job = STRATA_TRY(plan::make_job(levels.front(), bundle, place, environment, options, logs));
  return measure::calibrate(job, threads, kSeconds, machine, engine::progress_to(line));
}

}  // namespace

Result<int> run_calibration(const std::string& store_path) {
  auto store = STRATA_TRY(store::Store::open(store::Store::path_of(store_path)));
  const auto machine = probe::machine();
  const double load = probe::other_load(std::chrono::milliseconds(500));
  if (load > 0.1)
    return fail(
        fmt::format("other programs use {:.0f}% of this machine; a calibration now would blame it for their noise",
                    load * 100),
        "end them and run it again", Exit::environment);
  const measure::MeasuringMark mark(store::Store::default_path().parent_path() / "measuring");
  if (mark.other())
    return fail(analysis::warnings::another_run(*mark.other()) + "; a calibration now would blame the machine for it",
                "run it again when that has ended", Exit::environment);
  std::vector<int> thread_counts{1};
  if (probe::physical_cores() > 1) thread_counts.push_back(probe::physical_cores());
  for (const int threads : thread_counts) {
    ProgressLine line;
    const auto effect = STRATA_TRY(calibrate_threads(threads, machine, line));
    line.clear();
    STRATA_TRY(store.save_effect(effect));
    answer(fmt::format(
        "process effect with {} thread{}: {:.2f}% (95%: {:.2f} to {:.2f}%); intervals hold at least that much from now "
        "on\n",
        threads, threads == 1 ? "" : "s", effect.sigma * 100, effect.low * 100, effect.high * 100));
  }
  return 0;
}

}  // namespace strata::cli
