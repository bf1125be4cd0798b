// SPDX-License-Identifier: Apache-2.0
// `strata train MODEL --dataset NAME`: whole trainings of all levels that train, on the same images in the same order
// from the same weights.
#include "cli/train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/document.hpp"
#include "cli/forecast.hpp"
#include "cli/on_slurm.hpp"
#include "cli/run_training.hpp"
#include "cli/sharding.hpp"
#include "cli/verbs.hpp"
#include "common/duration.hpp"
#include "common/hash.hpp"
#include "common/interrupt.hpp"
#include "common/python.hpp"
#include "common/safetensors.hpp"
#include "common/text.hpp"
#include "data/cache.hpp"
#include "data/catalogue.hpp"
#include "plan/scale.hpp"
#include "probe/machine.hpp"
#include "report/render_file.hpp"
#include "report/training.hpp"
#include "requests/codec.hpp"
#include "stats/convergence.hpp"
#include "worker/answers.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

// --sweep-init: those that people use, and two whose deviation is no layer's.
constexpr const char* kUsualSchemes = "torch;kaiming:fan_in,relu;kaiming:fan_out,relu;xavier;normal:0.0001;normal:1";

// What only capture.initial knows, asked without loading PyTorch.
Result<void> check_schemes(const std::string& schemes) {
  const auto place = installation();
  worker::Launch launch;
  launch.argv = python_command(place.tools_python, place.root, {"-m", "capture.initial", "--scheme", schemes});
  launch.env = python_variables({place.root / "src", place.root / "sdk/python"});
  const auto ran = worker::run_to_end(launch, std::chrono::seconds(60));
  if (!ran) return fail(ran.error().what, ran.error().hint);
  const auto answer = worker::last_line(*ran);
  if (outside::flag_or(answer, "ok", false) || interrupted()) return {};
  return fail(outside::text_or(answer, "what", fmt::format("--init {}: cannot be read: {}", schemes, ran->log_tail)),
              outside::text_or(answer, "hint"), Exit::usage);
}

Result<void> read_schemes(TrainArguments& a) {
  a.initials.clear();
  for (const auto& text : split(a.sweep_init ? kUsualSchemes : a.init, ';')) {
    auto initial = STRATA_TRY(training::read_init(text));
    for (const auto& before : a.initials)
      if (before.name == initial.name)
        return fail(fmt::format("--init {}: {} is named twice", a.init, initial.name), "", Exit::usage);
    if (const auto file = initial.file.empty() ? Result<SafeTensors>() : SafeTensors::map(initial.file); !file)
      return fail(fmt::format("--init {}", file.error().what), file.error().hint, Exit::usage);
    a.initials.push_back(std::move(initial));
  }
  if (!a.sweep_init && a.init != "torch") STRATA_TRY(check_schemes(a.init));
  if (a.initials.size() > 1 && a.cluster.splits())
    return fail("several initialisations are not split over shards", "a call for each: --init " + a.initials[0].name,
                Exit::usage);
  return {};
}

// MLPerf's check means nothing of runs that all end at one of a few evaluations.
Result<void> check_rule(const TrainArguments& a) {
  if (a.rule != "mlperf") return {};
  if (!a.target)
    return fail("--rule mlperf counts the epochs to a target, and none is given", "add --target 95%", Exit::usage);
  if (a.epochs < stats::kRcpFewestEvaluations)
    return fail(fmt::format("--rule mlperf: {} evaluations a repeat, one an epoch; allowed: {} or more", a.epochs,
                            stats::kRcpFewestEvaluations),
                fmt::format("--epochs {}", stats::kRcpFewestEvaluations), Exit::usage);
  if (a.repeats < stats::kRcpFewestRuns)
    return fail(fmt::format("--rule mlperf: {} repeat{}; allowed: {} or more", a.repeats, a.repeats == 1 ? "" : "s",
                            stats::kRcpFewestRuns),
                fmt::format("--repeats {}", stats::kRcpFewestRuns), Exit::usage);
  return {};
}

Result<void> read_texts_of(TrainArguments& a) {
  auto& o = a.options;
  o.mode = "train";
  o.batches = {a.batch};
  o.thread_counts = {a.threads > 0 ? a.threads : probe::physical_cores()};
  STRATA_TRY(read_schemes(a));
  return check_rule(a);
}

// Its name, and its files where they are to be read: a plan of a known set needs none.
Result<void> check_dataset(const TrainArguments& a) {
  if (a.dataset == "digits") return {};
  data::ReadOptions options;
  options.data_dir = a.options.data_dir.empty() ? data::default_data_dir() : fs::path(a.options.data_dir);
  const auto reader = STRATA_TRY(data::make_reader(a.dataset, options));
  if (!a.dry_run || data::is_folder(a.dataset)) STRATA_TRY(reader->sources());
  return {};
}

Result<void> cut_by_scale(TrainArguments& a) {
  if (a.scale.empty()) return {};
  const auto scale = STRATA_TRY(plan::parse_scale(a.scale));
  const auto left = plan::cut(scale, a.epochs, a.repeats);
  a.scaled = fmt::format("scaled: {} of {} epoch{}, {} of {} repeat{}", left.epochs, a.epochs, a.epochs == 1 ? "" : "s",
                         left.repeats, a.repeats, a.repeats == 1 ? "" : "s");
  a.epochs = left.epochs;
  a.repeats = left.repeats;
  a.images_share = left.images;
  return {};
}

// Without --levels: those that train. Others would fill the table with what they were never made for.
void drop_untrained(std::vector<level::Level>& levels, const std::vector<std::string>& named) {
  if (!named.empty()) return;
  std::erase_if(levels, [](const level::Level& level) {
    return level.harness || std::find(level.modes.begin(), level.modes.end(), "train") == level.modes.end();
  });
}

int show_trained(const TrainArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return print_error(run.error());
  const auto document = report::training_document(*run, store);
  if (!document) return print_error(document.error());
  engine::keep_verdict(store, *run, document->summary);
  if (const int code = a.quiet ? 0 : print_document(*document, a.format); code != 0) return code;
  return a.output.empty() ? write_stored_page(*document, setting.place, store.path(), setting.run_id)
                          : write_page(*document, setting.place, a.output);
}

// How right the forecast was, of a training that came to its end.
void say_of_forecast(const store::Store& store, const std::string& run_id) {
  const auto run = store.load_case(run_id, "");
  if (!run) return;
  const auto predicted = report::number(run->settings, "predicted_s"), took = report::number(run->settings, "wall_s");
  if (predicted && took) tell(fmt::format("{}\n", against_forecast(*predicted, *took)));
}

store::Run describe(const engine::Prepared& ready, const requests::TrainRequest& request, const TrainArguments& a) {
  auto run = engine::describe_run(ready, a, a);
  run.settings.update(kept_of(a));
  run.settings["request"] = requests::to_json(request);
  run.settings["verb"] = "train";
  run.settings["dataset"] = a.dataset;
  run.settings["epochs"] = a.epochs;
  run.settings["repeats"] = a.repeats;
  run.settings["margin"] = a.margin;
  run.settings["loss_margin"] = a.loss_margin;
  if (a.target) run.settings["target"] = *a.target;
  run.settings["rule"] = a.rule;
  return run;
}

}  // namespace

int trainings_of(const TrainArguments& a, int repeats) {
  return repeats * static_cast<int>(std::max<std::size_t>(1, a.initials.size()));
}

std::string data_name(const TrainArguments& a, const std::string& set) {
  return a.partial ? set + "-partial" : set;
}

Result<engine::Prepared> ready_to_train(TrainArguments& a) {
  STRATA_TRY(cut_by_scale(a));
  STRATA_TRY(read_texts_of(a));
  STRATA_TRY(check_dataset(a));
  ProgressLine line;
  auto ready = engine::prepare(a, a, line);
  if (ready) drop_untrained(ready->levels, a.options.levels);
  return ready;
}

void scale_images(TrainArguments& a, plan::TrainingWork& work) {
  const auto limit = [&](std::int64_t most) {
    work.train = std::min(work.train, most);
    work.test = std::min(work.test, most);
  };
  if (a.images > 0) limit(a.images);
  if (a.images_share >= 1 || work.train == 0) return;
  const auto all = work.train;
  a.images = plan::cut_images(a.images_share, all, a.batch);
  limit(a.images);
  a.scaled += fmt::format(", {} of {} images", work.train, all);
}

Result<int> run_train(requests::TrainRequest& request, RunArguments& arguments) {
  TrainArguments a;
  static_cast<requests::TrainRequest&>(a) = request;
  static_cast<RunArguments&>(a) = arguments;
  if (!a.output.empty()) STRATA_TRY(report::check_writable(a.output, "-o"));
  std::optional<OwnShard> own;
  if (a.cluster.splits()) {
    const auto whole = STRATA_TRY(whole_training(request));
    if (!a.cluster.on.empty()) return send_to_slurm(request, a, whole);
    auto shard = STRATA_TRY(own_shard(request, a, whole));
    if (!shard.done.empty()) return say_shard_done(shard);
    own = std::move(shard);
    for (std::size_t repeat = 0; repeat < whole.parts; ++repeat)
      if (own->shard.has(repeat)) a.own_repeats.push_back(static_cast<int>(repeat));
  }
  const auto path = store::Store::path_of(a.store);
  STRATA_TRY(store::Store::look_at(path));
  auto ready = ready_to_train(a);
  if (interrupted()) return interrupt_exit_code();
  if (!ready) return tl::unexpected(ready.error());
  if (a.dry_run) return print_training_plan(a, *ready);
  STRATA_TRY(engine::check_resumed(*ready, a));
  auto store = STRATA_TRY(store::Store::open(path));
  auto run = a.resumed ? *a.resumed : describe(*ready, request, a);
  if (own) run.settings.update(own->settings);
  const auto ended = engine::carry_out(std::move(run), a.resumed.has_value(), *ready, store, [&](auto& stored) {
    ProgressLine line;
    return run_training(a, *ready, store, stored, line);
  });
  const int shown = ended.has_case ? show_trained(a, store, ready->setting) : 0;
  if (interrupted()) {
    tell(ended.has_case ? fmt::format("interrupted: complete epochs are stored; ./strata resume {} continues\n",
                                      ready->setting.run_id)
                        : std::string("interrupted: nothing was trained, and nothing is stored\n"));
    return interrupt_exit_code();
  }
  if (ended.failed) return tl::unexpected(*ended.failed);
  if (shown != 0) return shown;
  if (ended.exit_code() != 0) return ended.exit_code();
  say_of_forecast(store, ready->setting.run_id);
  return 0;
}

}  // namespace strata::cli
