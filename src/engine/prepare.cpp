// SPDX-License-Identifier: Apache-2.0
#include "engine/prepare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "common/interrupt.hpp"
#include "common/lookup.hpp"
#include "common/nearest.hpp"
#include "data/catalogue.hpp"
#include "data/image_files.hpp"
#include "level/installed_levels.hpp"
#include "measure/calibrate.hpp"
#include "measure/machine_facts.hpp"
#include "plan/install.hpp"
#include "plan/jobs.hpp"
#include "probe/machine.hpp"
#include "stats/compare.hpp"
#include "store/run_state.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// The participant that --reference names: of several environments a level stands for that in the first.
Result<std::string> reference_of(const std::string& reference, const std::vector<level::Level>& levels) {
  if (reference.empty()) return reference;
  std::vector<std::string> names;
  for (const auto& level : levels) {
    if (level.harness) continue;
    if (level.name() == reference || level.level_and_variant() == reference) return level.name();
    names.push_back(level.name());
  }
  const auto near = nearest(reference, names);
  return fail(fmt::format("--reference {}: no such level is compared; there are {}", reference, fmt::join(names, ", ")),
              near ? "did you mean " + *near + "?" : "name one of them, or add it to --levels", Exit::usage,
              among("--reference", reference, names));
}

// Of named levels of which none can run any case, whatever the network is, nothing is captured.
Result<void> check_levels(const Prepared& ready, const std::vector<std::string>& named) {
  std::vector<std::string> reasons;
  for (const auto& spec : ready.specs) {
    const auto bundle = provisional_bundle(spec);
    for (const auto& level : ready.levels) {
      const auto& s = ready.setting;
      const auto why =
          plan::cannot_run(level, bundle, bundle.question, s.environment_of(level), s.tools, s.place_of(level));
      if (!why || why->state != State::unsupported || level.on_data) return {};
      auto reason = fmt::format("{}: {}", level.name(), why->what);
      if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(std::move(reason));
    }
  }
  if (named.empty() || reasons.empty()) return {};
  return fail(
      fmt::format("--levels {}: none of them can run this: {}", fmt::join(named, ","), fmt::join(reasons, "; ")),
      "`./strata list levels` says which modes and devices each has", Exit::environment);
}

// What is stored of each environment, that of the capture first.
Json environments_of(const measure::Setting& setting) {
  Json all = Json::array();
  for (const auto& environment : setting.environments) all.push_back(environment.environment.to_json());
  if (all.empty()) all.push_back(setting.environment.to_json());
  return all;
}

// That of the capture, those that --env names, strata's own.
Result<void> ask_environments(measure::Setting& s, const std::vector<std::string>& modules) {
  auto named = STRATA_TRY(plan::ask_named_environments(s.options.environments, s.place, modules));
  if (!named.empty()) s.place = named.front().place;
  auto environments = STRATA_TRY(plan::ask_environments(s.place, modules));
  s.environments = std::move(named);
  s.environment = s.environments.empty() ? std::move(environments.measured) : s.environments.front().environment;
  s.tools = std::move(environments.tools);
  return {};
}

constexpr std::size_t kImagesOfSet = 256;  // of a data set; larger batches have several crops of each

// The images that --dataset names, as files.
Result<void> take_dataset(plan::Options& options, const fs::path& cache, EventSink& events) {
  if (options.dataset.empty()) return {};
  STRATA_TRY(private_folder(cache, "set STRATA_CACHE to a folder of your own"));
  data::ImageFilesOptions read;
  read.data_dir = options.data_dir.empty() ? data::default_data_dir() : fs::path(options.data_dir);
  read.most = kImagesOfSet;
  read.skip_bad = options.skip_bad;
  read.note = [&events](const std::string& line) { events.note(line); };
  const auto folder = STRATA_TRY(data::image_files(options.dataset, read, cache));
  options.dataset_folder = folder.string();
  return {};
}

}  // namespace

std::string new_run_id() {
  std::random_device device;
  auto now = utc_now();
  std::string stamp;
  for (const char c : now)
    if (c == 'T')
      stamp += '-';
    else if (c >= '0' && c <= '9')
      stamp += c;
  return fmt::format("{}-{:04x}", stamp, device() & 0xffffU);
}

store::Run describe_run(const Prepared& ready, const CompareRequest& request, const RunContext& context) {
  const auto& s = ready.setting;
  store::Run run;
  run.run_id = s.run_id;
  run.name = request.options.name;
  run.started = utc_now();
  run.command = context.command;
  run.version = STRATA_VERSION;
  run.seed = static_cast<std::int64_t>(s.order_seed);
  run.machine = s.machine;
  run.environments = environments_of(s);
  run.process = store::this_process();
  std::error_code ignored;
  run.settings = {.folder = fs::current_path(ignored).string(),
                  .effort = {.preset = s.effort.preset, .restarts = s.effort.restarts, .budget_s = s.effort.budget_s},
                  .aa = request.options.aa,
                  .deep = request.options.deep,
                  .tuned = request.options.tuned,
                  .clients = request.options.clients,
                  .dynamic = request.options.dynamic,
                  .slo = request.options.slo,
                  .eval = request.options.eval,
                  .memory_limit_gib = s.options.memory_limit_gib,
                  .cases = ready.specs.size(),
                  .suite = context.suite};
  if (s.effort.ci_width > 0) run.settings.effort.ci_width = s.effort.ci_width;
  return run;
}

Result<void> check_resumed(const Prepared& ready, const RunContext& context) {
  if (!context.resumed) return {};
  const auto now = environments_of(ready.setting);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& before = i < context.resumed->environments.size() ? context.resumed->environments[i] : Json();
    const auto& name = lookup::text(now[i], "name");
    for (const char* part : {"torch", "python_version"})
      if (lookup::text(before, part) != lookup::text(now[i], part))
        return fail(
            fmt::format("run {} began with {} {}{}, and this is {}", context.resumed->run_id, part,
                        lookup::text(before, part), name.empty() ? "" : " in " + name, lookup::text(now[i], part)),
            "continue with the same --python or --env, or start a new run", Exit::environment);
  }
  if (measure::machine_key(context.resumed->machine) != measure::machine_key(ready.setting.machine))
    return fail(fmt::format("run {} began on another machine ({})", context.resumed->run_id,
                            measure::machine_key(context.resumed->machine)),
                "continue there, or start a new run", Exit::environment);
  return {};
}

Result<void> check_ci_width(const Prepared& ready, const std::optional<store::Store>& store) {
  if (ready.setting.effort.ci_width <= 0) return {};
  const int threads = ready.specs.front().threads;
  measure::ProcessSigma sigma{stats::assumed_process_sigma(threads), "assumed"};
  if (store) sigma = STRATA_TRY(measure::process_sigma(*store, ready.setting.machine, threads));
  const int restarts = ready.setting.effort.restarts;
  const double reachable = stats::reachable_precision(restarts, sigma.value);
  if (ready.setting.effort.ci_width >= reachable) return {};
  const auto needed = stats::restarts_for_precision(ready.setting.effort.ci_width, sigma.value);
  return fail(
      fmt::format("--ci-width {:.2g}%: {} restarts can reach {:.2g}% at best, with a process effect of {:.2g}% ({})",
                  ready.setting.effort.ci_width * 100, restarts, reachable * 100, sigma.value * 100, sigma.source),
      needed ? fmt::format("--restarts {} or more, or a wider interval; `./strata doctor --calibrate` measures this "
                           "machine's process effect",
                           *needed)
             : std::string("a wider interval"),
      Exit::usage);
}

Result<Prepared> prepare(const CompareRequest& request, const RunContext& context, EventSink& events) {
  Prepared ready;
  auto& s = ready.setting;
  STRATA_TRY(plan::check_alone(request.options.environments, request.python));
  s.options = request.options;
  plan::limit_files(s.options);
  s.place = installation();
  STRATA_TRY(take_dataset(s.options, s.place.cache, events));
  ready.specs = STRATA_TRY(plan::specs_of(s.options));
  if (!request.options.eval.empty()) {
    ready.score = STRATA_TRY(measure::score_file(request.options.eval));
  }
  s.effort = STRATA_TRY(plan::effort_of(request.options));
  const auto& named = request.options.environments;
  if (!request.python.empty()) s.place.python = request.python;
  auto discovered = level::installed_levels(s.place);
  auto chosen = STRATA_TRY(plan::choose_levels(discovered, request.options.levels, request.options.device));
  ready.levels = plan::in_each_environment(chosen, named);
  s.options.reference = STRATA_TRY(reference_of(request.options.reference, ready.levels));
  if (!context.dry_run) plan::install_environments(ready.levels, request.options.levels, s.place);
  if (interrupted()) return fail("interrupted: nothing was measured", "", Exit::failed);
  ready.problems = std::move(discovered.problems);
  std::vector<std::string> modules;
  for (const auto& level : ready.levels) modules.insert(modules.end(), level.needs.begin(), level.needs.end());
  STRATA_TRY(ask_environments(s, modules));
  STRATA_TRY(check_levels(ready, request.options.levels));
  if (ready.score) {
    const auto longest = std::chrono::milliseconds(static_cast<std::int64_t>(s.options.timeout_s.value_or(600) * 1000));
    STRATA_TRY(measure::check_score(*ready.score, s.place, s.environment.python, longest));
  }
  s.machine = probe::machine();
  s.run_id = context.resumed ? context.resumed->run_id : new_run_id();
  s.resumed = context.resumed ? &*context.resumed : nullptr;
  s.order_seed = static_cast<std::uint64_t>(
      context.resumed ? context.resumed->seed
                      : request.options.order_seed.value_or(static_cast<std::int64_t>(std::random_device{}())));
  return ready;
}

}  // namespace strata::engine
