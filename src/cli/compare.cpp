// SPDX-License-Identifier: Apache-2.0
// `strata compare MODEL`: options, then cases one after the other, then the first screen and the report.
#include "measure/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>

#include "cli/capturing.hpp"
#include "cli/option.hpp"
#include "cli/say.hpp"
#include "cli/verbs.hpp"
#include "common/duration.hpp"
#include "common/interrupt.hpp"
#include "common/nearest.hpp"
#include "common/text.hpp"
#include "measure/calibrate.hpp"
#include "measure/warnings.hpp"
#include "plan/command.hpp"
#include "plan/jobs.hpp"
#include "probe/machine.hpp"
#include "report/html.hpp"
#include "report/render_file.hpp"
#include "report/sentence.hpp"
#include "report/view.hpp"
#include "stats/compare.hpp"
#include "store/run_state.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

struct CompareArguments {
  plan::Options options;
  std::string batch, levels, budget, precision, timeout, store, format = "text", python, output;
  std::string command;
};

std::optional<double> share(const std::string& text) {
  const auto found = number_and_unit(text);
  if (!found || (!found->second.empty() && found->second != "%")) return std::nullopt;
  return found->second.empty() ? found->first : found->first / 100;
}

Result<void> parse(CompareArguments& a) {
  const auto bad = [](const char* option, const std::string& got, const char* form) {
    return fail(fmt::format("{} {}: write {}", option, got, form), "", Exit::usage);
  };
  auto& o = a.options;
  for (const auto& part : split(a.batch, ',')) {
    if (part.find_first_not_of("0123456789") != std::string::npos || part.size() > 7)
      return bad("--batch", a.batch, "a whole number, or several as 1,8,32");
    o.batches.push_back(std::stoi(part));
  }
  o.levels = split(a.levels, ',');
  if (!a.budget.empty()) o.budget_s = seconds_of(a.budget);
  if (!a.timeout.empty()) o.timeout_s = seconds_of(a.timeout);
  if (!a.precision.empty() && !(o.precision = share(a.precision)))
    return bad("--precision", a.precision, "a share as 1%");
  return {};
}

std::string run_identity() {
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

// Everything that a run needs and that can be wrong before anything is measured.
struct Prepared {
  measure::Setting setting;
  std::vector<Json> specs;
  std::vector<level::Level> levels;
  std::vector<level::Problem> problems;
  std::optional<measure::ScoreFile> score;
};

Result<void> check_reference(const std::string& reference, const std::vector<level::Level>& levels) {
  if (reference.empty()) return {};
  std::vector<std::string> names;
  for (const auto& level : levels)
    if (!level.harness) names.push_back(level.name());
  if (std::find(names.begin(), names.end(), reference) != names.end()) return {};
  const auto near = nearest(reference, names);
  return fail(fmt::format("--reference {}: no such level is compared; there are {}", reference, fmt::join(names, ", ")),
              near ? "did you mean " + *near + "?" : "name one of them, or add it to --levels", Exit::usage);
}

Result<Prepared> get_ready(const CompareArguments& a) {
  Prepared ready;
  auto& s = ready.setting;
  s.options = a.options;
  auto specs = plan::specs_of(a.options);
  if (!specs) return tl::unexpected(specs.error());
  ready.specs = std::move(*specs);
  if (!a.options.eval.empty()) {
    auto score = measure::score_file(a.options.eval);
    if (!score) return tl::unexpected(score.error());
    ready.score = std::move(*score);
  }
  const auto effort = plan::effort_of(a.options);
  if (!effort) return tl::unexpected(effort.error());
  s.effort = *effort;
  s.place = installation();
  if (!a.python.empty()) s.place.python = a.python;
  auto found = level::discover(level::search_path(s.place.root));
  auto chosen = plan::choose_levels(found, a.options.levels, a.options.device);
  if (!chosen) return tl::unexpected(chosen.error());
  ready.levels = std::move(*chosen);
  if (auto there = check_reference(a.options.reference, ready.levels); !there) return tl::unexpected(there.error());
  ready.problems = std::move(found.problems);
  std::vector<std::string> modules;
  for (const auto& level : ready.levels) modules.insert(modules.end(), level.needs.begin(), level.needs.end());
  auto environments = plan::ask_environments(s.place, modules);
  if (!environments) return tl::unexpected(environments.error());
  s.environment = std::move(environments->measured);
  s.tools = std::move(environments->tools);
  s.machine = probe::machine();
  s.run_id = run_identity();
  s.order_seed =
      static_cast<std::uint64_t>(a.options.order_seed.value_or(static_cast<std::int64_t>(std::random_device{}())));
  return ready;
}

// A precision that the process effect makes unreachable is refused before an hour is spent on it.
Result<void> check_precision(const Prepared& ready, const store::Store& store) {
  if (ready.setting.effort.precision <= 0) return {};
  const auto sigma = measure::process_sigma(store, ready.setting.machine, ready.specs.front().value("threads", 1));
  if (!sigma) return tl::unexpected(sigma.error());
  const int restarts = ready.setting.effort.restarts;
  const double reachable = stats::reachable_precision(restarts, sigma->value);
  if (ready.setting.effort.precision >= reachable) return {};
  const auto needed = stats::restarts_for_precision(ready.setting.effort.precision, sigma->value);
  return fail(
      fmt::format("--precision {:.2g}%: {} restarts can reach {:.2g}% at best, with a process effect of {:.2g}% ({})",
                  ready.setting.effort.precision * 100, restarts, reachable * 100, sigma->value * 100, sigma->source),
      needed ? fmt::format("--restarts {} or more, or a coarser precision; `./strata doctor --calibrate` measures this "
                           "machine's process effect",
                           *needed)
             : std::string("a coarser precision"),
      Exit::usage);
}

store::Run describe_run(const Prepared& ready, const CompareArguments& a) {
  const auto& s = ready.setting;
  store::Run run;
  run.run_id = s.run_id;
  run.name = a.options.name;
  run.started = utc_now();
  run.command = a.command;
  run.version = STRATA_VERSION;
  run.seed = static_cast<std::int64_t>(s.order_seed);
  run.machine = s.machine;
  run.environments = Json::array({s.environment.to_json()});
  run.process = store::this_process();
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
                  {"precision", s.effort.precision > 0 ? Json(s.effort.precision) : Json()}};
  return run;
}

// What a list of runs says of each case.
void keep_verdicts(const Json& result, store::Store& store, const std::string& run_id) {
  for (const auto& one : result["cases"])
    if (const auto kept = store.set_verdict(run_id, report::text(one, "key"), report::brief_verdict(one)); !kept)
      return;  // a list without it is no reason to end in an error
}

// The result in the wanted form on standard output; for a person also the report's place.
int show_result(const CompareArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return complain(run.error());
  const Json result = report::view(*run);
  keep_verdicts(result, store, setting.run_id);
  if (const int code = print_result(result, a.format); code != 0) return code;
  const auto script = plotly_js(setting.place);
  const auto page = script ? report::html({result}, *script) : Result<std::string>(tl::unexpected(script.error()));
  fs::path path = a.output;
  if (a.output.empty()) {
    path = store.path().parent_path() / "reports" / (setting.run_id + ".html");
    std::error_code ignored;  // writing says it
    fs::create_directories(path.parent_path(), ignored);
  }
  const auto written = page ? report::write_whole(path, *page) : Result<void>(tl::unexpected(page.error()));
  if (!written) return complain(written.error());
  tell(fmt::format("report: {}\n", path.string()));
  return 0;
}

Json in_float32(Json spec) {
  spec["maths"] = "fp32";
  return spec;
}

// The inputs that a score wants, for a case of mode infer.
Result<std::optional<measure::Evaluation>> evaluation_of(const Prepared& ready, const Json& spec,
                                                         const plan::Bundle& bundle, const store::Store& store) {
  if (!ready.score || spec.value("mode", "infer") != "infer") return std::optional<measure::Evaluation>();
  const auto& s = ready.setting;
  const auto folder = store.path().parent_path() / "logs" / s.run_id / fmt::format("eval-{}", bundle.key);
  const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(s.options.timeout_s.value_or(600) * 1000));
  auto begun = measure::begin_evaluation(*ready.score, bundle, s.place, s.environment, folder, timeout);
  if (!begun) return tl::unexpected(begun.error());
  return std::optional<measure::Evaluation>(std::move(*begun));
}

// The run as the store has it, from the first case on that can be measured: what cannot begin leaves no trace.
class StoredRun {
 public:
  StoredRun(store::Run run, store::Store& store, const std::vector<level::Problem>& problems)
      : run_(std::move(run)), store_(store), problems_(problems) {}

  Result<void> begin() {
    if (begun_) return {};
    if (auto written = store_.begin_run(run_); !written) return written;
    begun_ = true;
    for (const auto& problem : problems_)
      if (auto warned = store_.add_warning(run_.run_id, measure::warnings::broken_level(problem.error.what)); !warned)
        return warned;
    return {};
  }

  // A case that was being measured did not come to its end.
  void cut_short() { is_cut_ = true; }

  // Whether there is a case to show. `failed` is kept where nothing worse was seen before.
  bool end(double wall_s, std::optional<Error>& failed) {
    if (!begun_) return false;
    if (interrupted()) (void)store_.add_warning(run_.run_id, measure::warnings::interrupted_run());
    run_.finished = utc_now();
    run_.interrupted = interrupted() || is_cut_;
    run_.settings["wall_s"] = wall_s;
    auto ended = store_.finish_run(run_);
    if (ended) ended = store_.drop_empty_run(run_.run_id);
    if (!ended && !failed) failed = ended.error();
    const auto cases = store_.run_cases(run_.run_id);
    return cases && !cases->empty();
  }

 private:
  store::Run run_;
  store::Store& store_;
  const std::vector<level::Problem>& problems_;
  bool begun_ = false, is_cut_ = false;
};

Result<measure::Outcome> run_case(const Prepared& ready, const Json& spec, store::Store& store, StoredRun& stored,
                                  ProgressLine& line) {
  const auto& s = ready.setting;
  const auto capture = [&](const Json& one, const plan::Bundle* shared) {
    return plan::get_bundle(one, s.place, s.environment, wishes_of(s.options, line, shared));
  };
  std::optional<plan::Bundle> strict;
  if (spec.value("maths", "fp32") != "fp32") {
    auto captured = capture(in_float32(spec), nullptr);
    if (!captured) return tl::unexpected(captured.error());
    strict = std::move(*captured);
  }
  const auto bundle = capture(spec, strict ? &*strict : nullptr);
  if (!bundle) return tl::unexpected(bundle.error());
  std::optional<plan::Bundle> deep;
  if (s.options.deep && spec.value("mode", "infer") == "infer") {
    auto tapped = in_float32(spec);
    tapped.erase("dynamic");
    tapped["deep"] = true;
    auto captured = capture(tapped, nullptr);
    if (!captured) return tl::unexpected(captured.error());
    deep = std::move(*captured);
  }
  auto evaluation = evaluation_of(ready, spec, *bundle, store);
  if (!evaluation) return tl::unexpected(evaluation.error());
  const measure::Besides besides{deep ? &*deep : nullptr, strict ? &*strict : nullptr,
                                 *evaluation ? &**evaluation : nullptr};
  if (auto begun = stored.begin(); !begun) return tl::unexpected(begun.error());
  auto outcome = measure::compare_case(s, *bundle, besides, ready.levels, store, line.callbacks());
  if (!outcome) stored.cut_short();
  return outcome;
}

// A case that cannot be run does not take the others with it; the first error is returned after them.
Result<measure::Outcome> run_cases(const Prepared& ready, store::Store& store, StoredRun& stored, ProgressLine& line) {
  measure::Outcome all;
  std::optional<Error> first;
  for (const auto& spec : ready.specs) {
    if (interrupted()) break;
    const auto outcome = run_case(ready, spec, store, stored, line);
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

int compare(CompareArguments& a) {
  if (auto ok = parse(a); !ok) return complain(ok.error());
  if (auto ok = format_option(a.format); !ok) return complain(ok.error());
  if (!a.output.empty())
    if (auto ok = report::check_writable(a.output, "-o"); !ok) return complain(ok.error());
  auto ready = get_ready(a);
  if (!ready) return complain(ready.error());
  say_of_model_file(a.options.model);
  auto store = store::Store::open(a.store.empty() ? store::Store::default_path() : fs::path(a.store));
  if (!store) return complain(store.error());
  if (auto ok = check_precision(*ready, *store); !ok) return complain(ok.error());
  StoredRun stored(describe_run(*ready, a), *store, ready->problems);
  const auto start = std::chrono::steady_clock::now();
  Result<measure::Outcome> outcome = measure::Outcome{};
  {
    ProgressLine line;
    outcome = run_cases(*ready, *store, stored, line);
  }
  std::optional<Error> failed;
  if (!outcome) failed = outcome.error();
  const bool has_case =
      stored.end(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), failed);
  // What was measured before an error is shown all the same.
  const int shown = has_case ? show_result(a, *store, ready->setting) : 0;
  if (interrupted())
    tell(has_case ? fmt::format("interrupted: what was measured is kept as run {}\n", ready->setting.run_id)
                  : std::string("interrupted: nothing was measured, and nothing is kept\n"));
  if (interrupted()) return interrupt_exit_code();
  if (failed) return complain(*failed);
  if (shown != 0) return shown;
  return static_cast<int>(outcome->failed ? Exit::failed : outcome->missing ? Exit::environment : Exit::ok);
}

// What the presets stand for, as --help says it.
std::string presets_in_words() {
  std::vector<std::string> words;
  for (const auto& one : plan::presets())
    words.push_back(
        fmt::format("{}: {} restarts, {} s measured a case, {} s to tune a level, {} s to serve a number of "
                    "clients",
                    one.preset, one.restarts, one.budget_s, one.tune_s, one.serve_s));
  return fmt::format("{}", fmt::join(words, "; "));
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& one : plan::presets()) names.push_back(one.preset);
  return names;
}

// The network and what goes in.
void add_network_options(CLI::App& verb, CompareArguments& a) {
  auto& o = a.options;
  verb.add_option("model", o.model,
                  "a model's name (strata list models), your own as path/to/file.py:build, or a file: .pt2, .pt "
                  "(TorchScript), .onnx")
      ->required();
  list(verb.add_option("--batch", a.batch, "batch size, or several as 1,8,32 (default: the model's own)"))
      ->type_name("N[,N...]");
  add_input_options(verb, o, "your inputs");
  add_capture_options(verb, o, false);
}

// What is compared.
void add_question_options(CLI::App& verb, CompareArguments& a) {
  auto& o = a.options;
  list(verb.add_option("--levels", a.levels,
                       "only these backends, as eager,libtorch; a variant as level@variant, compile@freezing (default: "
                       "all that run on the device; strata list levels)"))
      ->type_name("LEVEL[,LEVEL...]");
  verb.add_option("--reference", o.reference, "the level that the others' speedup is against (default: eager)")
      ->type_name("LEVEL");
  threads(verb.add_option("--threads", o.threads,
                          "threads of every level, at most 4 for each processor (default: physical cores)"));
  choice(verb.add_option("--device", o.device, "where levels run")->capture_default_str(), {"cpu", "cuda"});
  verb.add_option("--mode", o.mode, "infer, train (an iteration is one optimiser step), or infer,train for both")
      ->type_name("{infer,train}[,...]")
      ->capture_default_str();
  verb.add_option("--optimiser", o.optimiser,
                  "of training, as sgd:lr=0.01,momentum=0.9; it also takes weight_decay=0.0001, nesterov=true, "
                  "schedule=step/30/0.1 (default: sgd)")
      ->type_name("SGD");
  choice(verb.add_option("--loss", o.loss,
                         "of training: cross_entropy (of logits) or nll (of log-probabilities) (default: the model's "
                         "own, else cross_entropy)"),
         {"cross_entropy", "nll"});
  verb.add_option("--maths", o.maths,
                  "precision: fp32 (strict float32), bf16, amp-bf16, tf32 (CUDA), or several as fp32,bf16: a case "
                  "each")
      ->type_name("{fp32,tf32,bf16,amp-bf16}[,...]")
      ->capture_default_str();
  verb.add_option("--eval", o.eval,
                  "your score of every level's answers: file.py:score, where the file has inputs() and score(outputs)")
      ->type_name("FILE.py:FUNCTION");
  verb.add_flag("--tuned", o.tuned,
                "also find each level's best variant, in equal time, and measure it beside the default");
  verb.add_option("--clients", o.clients,
                  "also serve this many requests at once (concurrency), as 1,2,4: throughput, p50, p99, memory")
      ->type_name("N[,N...]");
  verb.add_option("--slo", o.slo, "what each level needs to meet a limit on the time of a request, as p99=20ms")
      ->type_name("pQ=TIME");
  verb.add_option("--dynamic", o.dynamic,
                  "also one artefact over several sizes, as batch=1..32: what recompiles, the time of each size, the "
                  "cost against the fixed one")
      ->type_name("batch=LOW..HIGH");
  verb.add_flag("--deep", o.deep, "compare layer by layer and say where levels part");
}

// How long, how often, how precisely.
void add_effort_options(CLI::App& verb, CompareArguments& a) {
  auto& o = a.options;
  choice(verb.add_option("--preset", o.preset, presets_in_words())->capture_default_str(), preset_names());
  whole(verb.add_option("--restarts", o.restarts, "fresh processes per level (default: the preset's)"), 1,
        plan::most_restarts);
  duration(verb.add_option("--budget", a.budget,
                           "measured time of a case, all levels together, as 60s (default: the preset's)"));
  verb.add_option("--precision", a.precision,
                  "stop when every speedup's interval is this narrow, as 1% (default: use the budget)")
      ->type_name("PERCENT");
  seed(verb.add_option("--order-seed", o.order_seed, "of the order of blocks (default: drawn and stored)"));
  verb.add_flag("--aa", o.aa, "also run every level against itself and show the false alarms");
  whole(verb.add_option("--weight-sets", o.weight_sets,
                        "drawn weight sets that outputs are proven on besides the timed weights")
            ->capture_default_str(),
        2, plan::most_weight_sets);
  duration(verb.add_option("--timeout", a.timeout,
                           "longest time for capturing the network (default: 1h) and for one request to a level "
                           "(default: 10m)"));
  positive(verb.add_option("--memory-limit", o.memory_limit_gib, "memory that each level may use (default: no limit)"))
      ->type_name("GIB");
  verb.add_flag("--allow-debug", o.allow_debug, "also time debug builds of levels");
}

// Whose PyTorch, and where results go.
void add_place_options(CLI::App& verb, CompareArguments& a) {
  verb.add_option("--python", a.python,
                  "your interpreter with PyTorch 2.11 or newer (default: STRATA_PYTHON, else strata's own)")
      ->type_name("PATH");
  verb.add_option("--name", a.options.name, "a name for this run")->type_name("NAME");
  verb.add_option("--store", a.store, "the store's file (default: strata/strata.db in the XDG data folder)")
      ->type_name("PATH");
  format_choice(verb.add_option("--format", a.format, "of the result on standard output"));
  verb.add_option("-o,--output", a.output, "where to write the HTML report (default: beside the store)")
      ->type_name("PATH");
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code, int argc, char** argv) {
  auto* verb = app.add_subcommand(
      "compare", "run one network at its levels, prove equal work, measure in turns, explain the difference");
  auto a = std::make_shared<CompareArguments>();
  a->command = "./strata";
  for (int i = 1; i < argc; ++i) a->command += " " + plan::quoted(argv[i]);
  add_network_options(*verb, *a);
  add_question_options(*verb, *a);
  add_effort_options(*verb, *a);
  add_place_options(*verb, *a);
  verb->get_option("--deep")->excludes(verb->get_option("--dynamic"));
  verb->footer(
      "Exit codes: 0 measured; 1 a level failed, crashed, timed out or was unequal; 2 wrong usage, nothing was "
      "measured; 3 the environment lacks what was required: a level that --levels names cannot run here (one of the "
      "default set that cannot is only listed: 0); 130, 143, 129 ended by Ctrl-C, SIGTERM or SIGHUP, what was measured "
      "is kept; 141 the reader of the output went away.");
  verb->callback([a, &exit_code] { exit_code = compare(*a); });
}

}  // namespace strata::cli
