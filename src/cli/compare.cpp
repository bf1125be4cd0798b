// SPDX-License-Identifier: Apache-2.0
// `strata compare MODEL`: options, then cases one after the other, then the first screen and the report.
#include "cli/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>

#include "cli/console.hpp"
#include "cli/document.hpp"
#include "cli/foreseen.hpp"
#include "cli/run_case.hpp"
#include "cli/stored_run.hpp"
#include "cli/verbs.hpp"
#include "common/duration.hpp"
#include "common/interrupt.hpp"
#include "common/nearest.hpp"
#include "common/text.hpp"
#include "data/catalogue.hpp"
#include "data/image_files.hpp"
#include "measure/calibrate.hpp"
#include "measure/compare.hpp"
#include "measure/machine_facts.hpp"
#include "measure/warnings.hpp"
#include "plan/command.hpp"
#include "plan/install.hpp"
#include "plan/jobs.hpp"
#include "probe/machine.hpp"
#include "report/compare.hpp"
#include "report/render_file.hpp"
#include "report/sentence.hpp"
#include "report/view.hpp"
#include "stats/compare.hpp"
#include "store/run_state.hpp"

namespace strata::cli {
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
              near ? "did you mean " + *near + "?" : "name one of them, or add it to --levels", Exit::usage);
}

// Of named levels of which none can run any case, whatever the network is, nothing is captured.
Result<void> check_levels(const Prepared& ready, const std::vector<std::string>& named) {
  std::vector<std::string> reasons;
  for (const auto& spec : ready.specs) {
    const auto bundle = foreseen(spec);
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

// An interval width that the process effect makes unreachable is refused before an hour is spent on it.
Result<void> check_ci_width(const Prepared& ready, const std::optional<store::Store>& store) {
  if (ready.setting.effort.ci_width <= 0) return {};
  const int threads = ready.specs.front().value("threads", 1);
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

std::string command_of(const std::vector<std::string>& words) {
  std::string command = "./strata";
  for (const auto& word : words) command += " " + plan::quoted(word);
  return command;
}

// What is stored of each environment, that of the capture first.
Json environments_of(const measure::Setting& setting) {
  Json all = Json::array();
  for (const auto& environment : setting.environments) all.push_back(environment.environment.to_json());
  if (all.empty()) all.push_back(setting.environment.to_json());
  return all;
}

// The result in the wanted form on standard output; for a person also the report's place.
int show_result(const CompareArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return print_error(run.error());
  const Json result = report::view(*run);
  std::map<std::string, std::string> verdicts;
  for (const auto& run_case : result["cases"])
    verdicts[report::text(run_case, "key")] = report::brief_verdict(run_case);
  (void)store.set_verdicts(setting.run_id, verdicts);  // a list of runs without them is no reason to end in an error
  if (const int code = a.quiet ? 0 : print_result(result, a.format); code != 0) return code;
  const auto document = report::compare_document({result});
  return a.output.empty() ? write_stored_page(document, setting.place, store.path(), setting.run_id)
                          : write_page(document, setting.place, a.output);
}

// A case that cannot be run does not take the others with it; the first error is returned after them.
Result<measure::Outcome> run_cases(const Prepared& ready, measure::MachineFacts& facts, store::Store& store,
                                   StoredRun& stored, ProgressLine& line) {
  measure::Outcome all;
  std::optional<Error> first;
  for (const auto& spec : ready.specs) {
    if (interrupted()) break;
    const auto outcome = run_case(ready, spec, facts, store, stored, line);
    if (!outcome) {
      if (interrupted()) break;
      if (&spec != &ready.specs.back()) line.callbacks().note(outcome.error().what);
      if (!first) first = outcome.error();
      continue;
    }
    all.failed = all.failed || outcome->failed;
    all.missing = all.missing || outcome->missing;
  }
  if (first) return tl::unexpected(*first);
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

store::Run describe_run(const Prepared& ready, const CompareArguments& a) {
  const auto& s = ready.setting;
  store::Run run;
  run.run_id = s.run_id;
  run.name = a.options.name;
  run.started = utc_now();
  run.command = command_of(a.words);
  run.version = STRATA_VERSION;
  run.seed = static_cast<std::int64_t>(s.order_seed);
  run.machine = s.machine;
  run.environments = environments_of(s);
  run.process = store::this_process();
  std::error_code ignored;
  run.settings = {{"preset", s.effort.preset},
                  {"restarts", s.effort.restarts},
                  {"budget_s", s.effort.budget_s},
                  {"aa", a.options.aa},
                  {"deep", a.options.deep},
                  {"tuned", a.options.tuned},
                  {"clients", a.options.clients.empty() ? Json() : Json(a.options.clients)},
                  {"dynamic", a.options.dynamic.empty() ? Json() : Json(a.options.dynamic)},
                  {"slo", a.options.slo.empty() ? Json() : Json(a.options.slo)},
                  {"eval", a.options.eval.empty() ? Json() : Json(a.options.eval)},
                  {"ci_width", s.effort.ci_width > 0 ? Json(s.effort.ci_width) : Json()},
                  {"cases", ready.specs.size()},
                  {"memory_limit_gib", s.options.memory_limit_gib ? Json(*s.options.memory_limit_gib) : Json()},
                  {"arguments", a.words},
                  {"folder", fs::current_path(ignored).string()}};
  if (!a.suite.is_null()) run.settings["suite"] = a.suite;
  return run;
}

Result<void> check_resumed(const Prepared& ready, const CompareArguments& a) {
  if (!a.resumed) return {};
  const auto now = environments_of(ready.setting);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& before = i < a.resumed->environments.size() ? a.resumed->environments[i] : Json();
    const auto& name = report::text(now[i], "name");
    for (const char* part : {"torch", "python_version"})
      if (report::text(before, part) != report::text(now[i], part))
        return fail(
            fmt::format("run {} began with {} {}{}, and this is {}", a.resumed->run_id, part,
                        report::text(before, part), name.empty() ? "" : " in " + name, report::text(now[i], part)),
            "continue with the same --python or --env, or start a new run", Exit::environment);
  }
  if (measure::machine_key(a.resumed->machine) != measure::machine_key(ready.setting.machine))
    return fail(fmt::format("run {} began on another machine ({})", a.resumed->run_id,
                            measure::machine_key(a.resumed->machine)),
                "continue there, or start a new run", Exit::environment);
  return {};
}

namespace {

constexpr std::size_t kImagesOfSet = 256;  // of a data set; larger batches have several crops of each

// The images that --dataset names, as files.
Result<void> take_dataset(plan::Options& options, const CompareArguments& a, const fs::path& cache) {
  if (options.dataset.empty()) return {};
  STRATA_TRY(private_folder(cache, "set STRATA_CACHE to a folder of your own"));
  data::ImageFilesOptions read;
  read.data_dir = a.data_dir.empty() ? data::default_data_dir() : fs::path(a.data_dir);
  read.most = kImagesOfSet;
  read.skip_bad = a.skip_bad;
  read.note = [](const std::string& line) { tell(line + "\n"); };
  const auto folder = STRATA_TRY(data::image_files(options.dataset, read, cache));
  options.dataset_folder = folder.string();
  return {};
}

}  // namespace

Result<Prepared> get_ready(const CompareArguments& a) {
  Prepared ready;
  auto& s = ready.setting;
  s.options = a.options;
  s.place = installation();
  STRATA_TRY(take_dataset(s.options, a, s.place.cache));
  ready.specs = STRATA_TRY(plan::specs_of(s.options));
  if (!a.options.eval.empty()) {
    ready.score = STRATA_TRY(measure::score_file(a.options.eval));
  }
  s.effort = STRATA_TRY(plan::effort_of(a.options));
  const auto& named = a.options.environments;
  if (!a.python.empty()) s.place.python = a.python;
  auto discovered = level::discover(level::search_path(s.place.root));
  auto chosen = STRATA_TRY(plan::choose_levels(discovered, a.options.levels, a.options.device));
  ready.levels = plan::in_each_environment(chosen, named);
  s.options.reference = STRATA_TRY(reference_of(a.options.reference, ready.levels));
  if (!a.dry_run) plan::install_environments(ready.levels, a.options.levels, s.place);
  if (interrupted()) return fail("interrupted: nothing was measured", "", Exit::failed);
  ready.problems = std::move(discovered.problems);
  std::vector<std::string> modules;
  for (const auto& level : ready.levels) modules.insert(modules.end(), level.needs.begin(), level.needs.end());
  STRATA_TRY(ask_environments(s, modules));
  STRATA_TRY(check_levels(ready, a.options.levels));
  if (ready.score) {
    const auto longest = std::chrono::milliseconds(static_cast<std::int64_t>(s.options.timeout_s.value_or(600) * 1000));
    STRATA_TRY(measure::check_score(*ready.score, s.place, s.environment.python, longest));
  }
  s.machine = probe::machine();
  s.run_id = a.resumed ? a.resumed->run_id : new_run_id();
  s.resumed = a.resumed ? &*a.resumed : nullptr;
  s.order_seed = static_cast<std::uint64_t>(
      a.resumed ? a.resumed->seed : a.options.order_seed.value_or(static_cast<std::int64_t>(std::random_device{}())));
  return ready;
}

Result<int> run_as(CompareArguments& a, const RunKind& kind) {
  STRATA_TRY(read_texts(a));
  STRATA_TRY(format_option(a.format));
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  const auto path = a.store.empty() ? store::Store::default_path() : fs::path(a.store);
  auto stored_before = STRATA_TRY(store::Store::look_at(path));
  auto ready = get_ready(a);
  if (interrupted()) return interrupt_exit_code();
  if (!ready) return tl::unexpected(ready.error());
  if (kind.arrange) STRATA_TRY(kind.arrange(*ready));
  STRATA_TRY(check_ci_width(*ready, stored_before));
  stored_before.reset();
  if (a.dry_run) return print_plan(*ready, a);
  STRATA_TRY(check_resumed(*ready, a));
  warn_of_model_file(a.options.model);
  auto store = STRATA_TRY(store::Store::open(path));
  auto facts = measure::MachineFacts::of(ready->setting.machine, ready->setting.effort.budget_s, store);
  auto run = a.resumed ? *a.resumed : describe_run(*ready, a);
  if (!kind.verb.empty()) run.settings["verb"] = kind.verb;
  run.settings.update(kind.settings);
  StoredRun stored(std::move(run), store, ready->problems, a.resumed.has_value());
  const auto start = std::chrono::steady_clock::now();
  Result<measure::Outcome> outcome = measure::Outcome{};
  {
    ProgressLine line;
    outcome = kind.run_cases(*ready, facts, store, stored, line);
  }
  std::optional<Error> failed;
  if (!outcome) failed = outcome.error();
  const bool has_case =
      stored.end(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), failed);
  // What was measured before an error is shown all the same.
  const int shown = has_case ? kind.show(a, store, ready->setting) : 0;
  if (interrupted())
    tell(has_case ? fmt::format("interrupted: what was measured is stored; ./strata resume {} continues\n",
                                ready->setting.run_id)
                  : std::string("interrupted: nothing was measured, and nothing is stored\n"));
  if (interrupted()) return interrupt_exit_code();
  if (failed) return tl::unexpected(*failed);
  if (shown != 0) return shown;
  return static_cast<int>(outcome->failed ? Exit::failed : outcome->missing ? Exit::environment : Exit::ok);
}

Result<int> run_compare(CompareArguments& a) {
  return run_as(a, {.verb = "", .arrange = {}, .run_cases = run_cases, .show = show_result});
}

int compare(CompareArguments& a) {
  const auto code = run_compare(a);
  return code ? *code : print_error(code.error());
}

void add_compare(CLI::App& app, int& exit_code, int argc, char** argv) {
  auto* verb = app.add_subcommand(
      "compare", "run one network at its levels, prove equal work, measure interleaved, explain the difference");
  auto a = std::make_shared<CompareArguments>();
  a->words.assign(argv + 1, argv + argc);
  add_compare_options(*verb, *a);
  verb->callback([a, &exit_code] { exit_code = compare(*a); });
}

}  // namespace strata::cli
