// SPDX-License-Identifier: Apache-2.0
// `strata train MODEL --dataset NAME`: whole trainings of all levels that train, on the same images in the same order
// from the same weights.
#include "cli/train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "analysis/store_metrics.hpp"
#include "cli/capturing.hpp"
#include "cli/document.hpp"
#include "cli/forecast.hpp"
#include "cli/on_slurm.hpp"
#include "cli/sharding.hpp"
#include "cli/stored_run.hpp"
#include "cli/verbs.hpp"
#include "common/duration.hpp"
#include "common/hash.hpp"
#include "common/interrupt.hpp"
#include "common/temporary.hpp"
#include "common/text.hpp"
#include "data/cache.hpp"
#include "data/catalogue.hpp"
#include "measure/peaks.hpp"
#include "plan/scale.hpp"
#include "probe/machine.hpp"
#include "report/render_file.hpp"
#include "report/training.hpp"
#include "training/run.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

constexpr int kSharesOfShift = 8;  // an image is moved by up to this part of its height

Result<void> read_texts_of(TrainArguments& a) {
  auto& o = a.common.options;
  o.mode = "train";
  o.batches = {a.batch};
  o.thread_counts = {a.threads > 0 ? a.threads : probe::physical_cores()};
  if (auto read = read_texts(a.common); !read) return read;
  for (const auto& word : split(a.augment, ','))
    if (word != "flip" && word != "crop")
      return fail(fmt::format("--augment {}: '{}' is not one of: flip, crop", a.augment, word), "", Exit::usage);
  auto initial = training::read_init(a.init);
  if (!initial) return tl::unexpected(initial.error());
  a.initial = std::move(*initial);
  const auto margin = number_and_unit(a.margin_text);
  if (!margin || margin->second != "pp" || !(margin->first > 0 && margin->first <= 50))
    return fail(fmt::format("--margin {}: allowed: percentage points above 0 and up to 50", a.margin_text),
                "as --margin 1pp or --margin 0.5pp", Exit::usage);
  a.margin = margin->first / 100;
  if (!a.target_text.empty()) {
    const auto target = number_and_unit(a.target_text);
    if (!target || target->second != "%" || !(target->first > 0 && target->first <= 100))
      return fail(fmt::format("--target {}: allowed: above 0% and up to 100%", a.target_text), "as --target 95%",
                  Exit::usage);
    a.target = target->first / 100;
  }
  if (a.scale.empty()) return {};
  const auto scale = plan::parse_scale(a.scale);
  if (!scale) return tl::unexpected(scale.error());
  const auto left = plan::cut(*scale, a.epochs, a.repeats);
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

Result<data::Opened> open_data(const TrainArguments& a, const fs::path& cache, ProgressLine& line) {
  data::OpenOptions options;
  options.data_dir = a.data_dir.empty() ? data::default_data_dir() : fs::path(a.data_dir);
  options.cache_dir = cache;
  options.threads = probe::physical_cores();
  options.partial = a.partial;
  const auto progress = line.callbacks();
  options.status = progress.status;
  options.note = progress.note;
  return data::open_dataset(a.dataset, options);
}

// The network at the data set's size where it takes that, else at its own.
Result<plan::Bundle> capture(Prepared& ready, const data::Dataset& set, ProgressLine& line) {
  auto& s = ready.setting;
  const auto get = [&](const nlohmann::json& spec) {
    return plan::get_bundle(spec, s.place, s.environment, wishes_of(s.options, line));
  };
  const auto own = ready.specs.front();
  if (!s.options.size.empty()) return get(own);
  auto sized = own;
  sized["size"] = {set.shape.height, set.shape.width};
  auto bundle = get(sized);
  if (bundle || interrupted()) return bundle;
  auto otherwise = get(own);
  if (!otherwise) return tl::unexpected(bundle.error());
  return otherwise;
}

Result<data::Shape> image_shape(const plan::Bundle& bundle) {
  const auto& inputs = bundle.question.inputs;
  if (inputs.size() == 1 && inputs[0].shape.size() == 4 && inputs[0].dtype == "float32")
    return data::Shape{inputs[0].shape[1], inputs[0].shape[2], inputs[0].shape[3]};
  return fail(
      fmt::format("{} takes no image: strata train wants one float32 input [N, C, H, W]", bundle.question.model),
      "compare --mode train times single steps of any network", Exit::usage);
}

// What is asked, beyond the step that the bundle was captured for.
core::Case question_of(const TrainArguments& a, const plan::Bundle& bundle, const data::Dataset& set) {
  auto question = bundle.question;
  question.data = data_name(a, set.name);
  question.recipe->training = core::Training{a.epochs, a.initial.name, a.augment, a.images};
  return question;
}

Result<training::Plan> plan_of(const TrainArguments& a, const plan::Bundle& bundle, const data::Opened& opened,
                               const fs::path& scratch, const fs::path& keep) {
  const auto shape = image_shape(bundle);
  if (!shape) return tl::unexpected(shape.error());
  training::Plan plan;
  plan.repeats = a.repeats;
  plan.own_repeats = a.own_repeats;
  plan.proofs = a.proofs;
  plan.norms = a.norms;
  plan.keep = keep;
  const auto augment = split(a.augment, ',');
  const auto has = [&](const char* word) { return std::find(augment.begin(), augment.end(), word) != augment.end(); };
  plan.augment.flip = has("flip");
  if (has("crop")) plan.augment.shift = static_cast<int>(std::max<std::int64_t>(1, shape->height / kSharesOfShift));
  auto data = training::prepare_data(opened.set, *shape, bundle.question.batch,
                                     a.images > 0 ? std::optional(a.images) : std::nullopt, scratch);
  if (!data) return tl::unexpected(data.error());
  plan.data = std::move(*data);
  plan.data_note = fmt::format("{}: {} images to learn from, {} to test{}", opened.set.name, plan.data.train,
                               plan.data.test, plan.data.change.empty() ? "" : ", " + plan.data.change);
  return plan;
}

// What is now known for certain: the images, the network.
TrainingForecast foretell(const TrainArguments& a, const Prepared& ready, const plan::TrainingWork& work,
                          const plan::Bundle& bundle, const data::Dataset& set) {
  const auto size = bundle.question.image_size();
  Foretold about{.question = bundle.question, .weights_bytes = weights_bytes(bundle.folder)};
  about.question.data = data_name(a, set.name);
  if (size) std::tie(about.height, about.width) = std::pair(std::optional(size->first), std::optional(size->second));
  about.forward_flops = [&]() -> Result<double> {
    if (const auto flops = measure::flops_of(bundle.info)) return *flops / static_cast<double>(bundle.question.batch);
    return fail("what the network computes is not counted");
  };
  return forecast(a, ready, work, about, participants_of(ready, bundle));
}

// Nobody shall find out by waiting.
void say_of_time(const TrainingForecast& told, ProgressLine& line) {
  constexpr double long_s = 3600;
  if (told.known && told.seconds > long_s)
    line.callbacks().note(
        fmt::format("this takes {} ({}); --scale 0.1 does a tenth of it", about(told.seconds), told.source()));
}

int show_trained(const TrainArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return complain(run.error());
  const auto document = report::training_document(*run, store);
  if (!document) return complain(document.error());
  for (const auto& one : run->cases)  // a list of runs without it is no reason to end in an error
    (void)store.set_verdict(run->run_id, one.key, document->summary);
  if (const int code = a.common.quiet ? 0 : print_document(*document, a.common.format); code != 0) return code;
  const auto path = a.common.output.empty() ? default_report(store.path(), setting.run_id) : fs::path(a.common.output);
  return write_page(*document, setting.place, path);
}

Result<measure::Outcome> run_training(TrainArguments& a, Prepared& ready, store::Store& store, StoredRun& stored,
                                      ProgressLine& line) {
  auto& s = ready.setting;
  auto opened = open_data(a, s.place.cache, line);
  if (!opened) return tl::unexpected(opened.error());
  plan::TrainingWork work{.train = static_cast<std::int64_t>(opened->set.train.count),
                          .test = static_cast<std::int64_t>(opened->set.test.count),
                          .batch = a.batch,
                          .epochs = a.epochs,
                          .repeats = a.own_repeats.empty() ? a.repeats : static_cast<int>(a.own_repeats.size()),
                          .proofs = a.proofs};
  scale_images(a, work);
  if (!a.scaled.empty()) {
    line.callbacks().note(a.scaled);
    stored.set("scaled", a.scaled);
  }
  const auto bundle = capture(ready, opened->set, line);
  if (!bundle) return tl::unexpected(bundle.error());
  const auto temporary = temporary_folder(s.place.cache);
  if (!temporary) return tl::unexpected(temporary.error());
  const fs::path scratch = fs::path(*temporary) / "training";
  std::error_code ec;
  fs::create_directories(scratch, ec);
  const auto keep = store.path().parent_path() / "trainings" / s.run_id;
  auto plan = plan_of(a, *bundle, *opened, scratch, keep);
  if (!plan) return tl::unexpected(plan.error());
  line.callbacks().note(plan->data_note);
  const auto initial = training::initial_weights(*bundle, a.initial, a.repeats, scratch, s.place);
  if (!initial) return tl::unexpected(initial.error());
  const auto told = foretell(a, ready, work, *bundle, opened->set);
  say_of_time(told, line);
  if (told.known && !a.common.resumed) stored.set("predicted_s", told.seconds);
  if (auto begun = stored.begin(); !begun) return tl::unexpected(begun.error());
  auto facts = measure::MachineFacts::of(s.machine, s.effort.budget_s, store);
  const auto question = question_of(a, *bundle, opened->set);
  auto outcome =
      training::train_case(s, *bundle, question, ready.levels, *plan, *initial, facts, store, line.callbacks());
  if (!outcome) stored.cut_short();
  if (outcome)
    if (auto written = analysis::store_metrics(store, s.run_id, key_of(question)); !written)
      return tl::unexpected(written.error());
  return outcome;
}

// How right the forecast was, of a training that came to its end.
void say_of_forecast(const store::Store& store, const std::string& run_id) {
  const auto run = store.load_case(run_id, "");
  if (!run) return;
  const auto predicted = report::number(run->settings, "predicted_s"), took = report::number(run->settings, "wall_s");
  if (predicted && took) tell(fmt::format("{}\n", against_forecast(*predicted, *took)));
}

store::Run describe(const Prepared& ready, const TrainArguments& a) {
  auto run = describe_run(ready, a.common);
  run.settings["verb"] = "train";
  run.settings["dataset"] = a.dataset;
  run.settings["epochs"] = a.epochs;
  run.settings["repeats"] = a.repeats;
  run.settings["margin"] = a.margin;
  run.settings["loss_margin"] = a.loss_margin;
  if (a.target) run.settings["target"] = *a.target;
  return run;
}

}  // namespace

std::string data_name(const TrainArguments& a, const std::string& set) {
  return a.partial ? set + "-partial" : set;
}

Result<Prepared> ready_to_train(TrainArguments& a) {
  if (auto ok = read_texts_of(a); !ok) return tl::unexpected(ok.error());
  auto ready = get_ready(a.common);
  if (ready) drop_untrained(ready->levels, a.common.options.levels);
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

Result<int> run_train(TrainArguments& a) {
  if (!a.common.output.empty())
    if (auto ok = report::check_writable(a.common.output, "-o"); !ok) return tl::unexpected(ok.error());
  std::optional<OwnShard> own;
  if (a.common.cluster.splits()) {
    const auto whole = whole_training(a);
    if (!whole) return tl::unexpected(whole.error());
    if (!a.common.cluster.on.empty()) return send_to_slurm(a.common, *whole);
    auto shard = own_shard(a.common, *whole);
    if (!shard) return tl::unexpected(shard.error());
    if (!shard->done.empty()) return say_shard_done(*shard);
    own = std::move(*shard);
    for (std::size_t repeat = 0; repeat < whole->parts; ++repeat)
      if (own->shard.has(repeat)) a.own_repeats.push_back(static_cast<int>(repeat));
  }
  auto ready = ready_to_train(a);
  if (interrupted()) return interrupt_exit_code();
  if (!ready) return tl::unexpected(ready.error());
  if (a.common.dry_run) return print_forecast(forecast(a, *ready), a);
  if (auto same = check_resumed(*ready, a.common); !same) return tl::unexpected(same.error());
  auto store = store::Store::open(a.common.store.empty() ? store::Store::default_path() : fs::path(a.common.store));
  if (!store) return tl::unexpected(store.error());
  auto run = a.common.resumed ? *a.common.resumed : describe(*ready, a);
  if (own) run.settings.update(own->settings);
  StoredRun stored(std::move(run), *store, ready->problems, a.common.resumed.has_value());
  const auto start = std::chrono::steady_clock::now();
  Result<measure::Outcome> outcome = measure::Outcome{};
  {
    ProgressLine line;
    outcome = run_training(a, *ready, *store, stored, line);
  }
  std::optional<Error> failed;
  if (!outcome) failed = outcome.error();
  const bool has_case =
      stored.end(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), failed);
  const int shown = has_case ? show_trained(a, *store, ready->setting) : 0;
  if (interrupted()) {
    tell(has_case
             ? fmt::format("interrupted: whole epochs are kept; ./strata resume {} goes on\n", ready->setting.run_id)
             : std::string("interrupted: nothing was trained, and nothing is kept\n"));
    return interrupt_exit_code();
  }
  if (failed) return tl::unexpected(*failed);
  if (shown != 0) return shown;
  if (outcome->failed || outcome->missing) return static_cast<int>(outcome->failed ? Exit::failed : Exit::environment);
  say_of_forecast(*store, ready->setting.run_id);
  return 0;
}

int train(TrainArguments& a) {
  const auto code = run_train(a);
  return code ? *code : complain(code.error());
}

void add_train(CLI::App& app, int& exit_code, int argc, char** argv) {
  auto* verb = app.add_subcommand(
      "train", "train one network at its levels on real data: accuracy, loss and time, epoch by epoch");
  auto a = std::make_shared<TrainArguments>();
  a->common.words.assign(argv + 1, argv + argc);
  add_train_options(*verb, *a);
  verb->callback([a, &exit_code] { exit_code = train(*a); });
}

}  // namespace strata::cli
