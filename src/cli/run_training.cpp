// SPDX-License-Identifier: Apache-2.0
#include "cli/run_training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "analysis/store_metrics.hpp"
#include "cli/forecast.hpp"
#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "common/temporary.hpp"
#include "common/text.hpp"
#include "data/cache.hpp"
#include "data/catalogue.hpp"
#include "engine/run_case.hpp"
#include "measure/peaks.hpp"
#include "probe/machine.hpp"
#include "training/run.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

constexpr int kSharesOfShift = 8;          // an image is moved by up to this part of its height
constexpr std::int64_t kLooksAnEpoch = 4;  // at the layers, where several schemes are compared

Result<data::Opened> open_data(const TrainArguments& a, const fs::path& cache, engine::EventSink& events) {
  data::OpenOptions options;
  options.data_dir = a.options.data_dir.empty() ? data::default_data_dir() : fs::path(a.options.data_dir);
  options.cache_dir = cache;
  options.threads = probe::physical_cores();
  options.partial = a.partial;
  options.skip_bad = a.options.skip_bad;
  const auto progress = engine::progress_to(events);
  options.status = progress.status;
  options.note = progress.note;
  return data::open_dataset(a.dataset, options);
}

Result<plan::Bundle> capture(engine::Prepared& ready, const data::Dataset& set, engine::EventSink& events) {
  const auto& s = ready.setting;
  return at_size_of(set.shape, s, ready.specs.front(), [&](const nlohmann::json& spec) {
    return plan::get_bundle(spec, s.place, s.environment, engine::wishes_of(s.options, events));
  });
}

// What is asked, beyond the step that the bundle was captured for.
core::Case question_of(const TrainArguments& a, const training::Initial& initial, const plan::Bundle& bundle,
                       const data::Opened& opened) {
  auto question = bundle.question;
  question.data = data_name(a, opened.set.name);
  question.recipe->training = core::Training{.epochs = a.epochs,
                                             .init = initial.name,
                                             .augment = fmt::format("{}", fmt::join(a.augment, ",")),
                                             .most_images = a.images,
                                             .data_sha256 = data::content_sha256(opened)};
  return question;
}

// A training goes on with the images that it began with.
Result<void> check_data(const TrainArguments& a, const data::Opened& opened) {
  const auto now = data::content_sha256(opened);
  for (const auto& before : a.resumed ? a.resumed->cases : std::vector<store::Case>()) {
    const auto& recipe = before.question.recipe;
    if (!recipe || !recipe->training || recipe->training->data_sha256 == now) continue;
    return fail(fmt::format("run {} began with other images of {}: their sha256 was {}, and is {} now",
                            a.resumed->run_id, a.dataset, recipe->training->data_sha256, now),
                "put the files back as they were and resume again, or start a new run", Exit::environment);
  }
  return {};
}

Result<training::Plan> plan_of(const TrainArguments& a, const plan::Bundle& bundle, const data::Opened& opened,
                               const fs::path& scratch) {
  const auto shape = STRATA_TRY(image_shape(outside::field(bundle.info, "inputs"), bundle.question.model));
  training::Plan plan;
  plan.repeats = a.repeats;
  plan.own_repeats = a.own_repeats;
  plan.proofs = a.proofs;
  plan.norms = a.norms;
  const auto has = [&](const char* word) {
    return std::find(a.augment.begin(), a.augment.end(), word) != a.augment.end();
  };
  plan.augment.flip = has("flip");
  if (has("crop")) plan.augment.shift = static_cast<int>(std::max<std::int64_t>(1, shape.height / kSharesOfShift));
  plan.data = STRATA_TRY(training::prepare_data(opened.set, shape, bundle.question.batch,
                                                a.images > 0 ? std::optional(a.images) : std::nullopt, scratch));
  if (a.initials.size() > 1 && !a.norms)
    plan.norms = std::max<std::int64_t>(1, plan.data.train / bundle.question.batch / kLooksAnEpoch);
  plan.data_note = fmt::format("{}: {} images to learn from, {} to test{}", opened.set.name, plan.data.train,
                               plan.data.test, plan.data.change.empty() ? "" : ", " + plan.data.change);
  if (const auto sha256 = data::content_sha256(opened); !sha256.empty())
    plan.data_note += fmt::format("; sha256 {}", sha256);
  if (opened.facts.skipped > 0)
    plan.data_note += fmt::format("; {} that cannot be read are left out", opened.facts.skipped);
  for (const auto& words : opened.facts.left_out) plan.data_note += "; not taken: " + words;
  return plan;
}

// What is now known for certain: the images, the network.
TrainingForecast foretell(const TrainArguments& a, const engine::Prepared& ready, const plan::TrainingWork& work,
                          const plan::Bundle& bundle, const data::Dataset& set) {
  const auto size = bundle.question.image_size();
  Foretold about{.question = bundle.question, .weights_bytes = weights_bytes(bundle.folder)};
  about.question.data = data_name(a, set.name);
  if (size) std::tie(about.height, about.width) = std::pair(std::optional(size->first), std::optional(size->second));
  about.forward_flops = [&]() -> Result<double> {
    if (const auto flops = measure::flops_of(bundle.info)) return *flops / static_cast<double>(bundle.question.batch);
    return fail("what the network computes is not counted");
  };
  return forecast(a, ready, work, about, engine::participants_of(ready, bundle));
}

// Nobody shall find out by waiting.
void say_of_time(const TrainingForecast& prediction, engine::EventSink& events) {
  constexpr double long_s = 3600;
  if (prediction.known && prediction.seconds > long_s)
    events.note(fmt::format("this takes {} ({}); --scale 0.1 does a tenth of it", report::about(prediction.seconds),
                            prediction.source()));
}

// The weights that each training begins with, by scheme and repeat; all schemes are right before anything is trained.
Result<std::vector<std::vector<fs::path>>> weights_of(const TrainArguments& a, const plan::Bundle& bundle,
                                                      const fs::path& scratch, const Installation& place) {
  std::vector<std::vector<fs::path>> all;
  for (const auto& initial : a.initials) {
    const auto folder = scratch / fmt::format("initial-{}", all.size());
    std::error_code ec;  // what writes into it says it
    fs::create_directories(folder, ec);
    auto files = STRATA_TRY(training::initial_weights(bundle, initial, a.repeats, folder, place));
    all.push_back(std::move(files));
  }
  return all;
}

// A scheme as a folder is called.
std::string folder_name(std::string scheme) {
  for (char& c : scheme)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  return scheme;
}

// One scheme's training.
Result<measure::Outcome> train_one(const engine::Prepared& ready, const plan::Bundle& bundle,
                                   const core::Case& question, const training::Plan& plan,
                                   const std::vector<fs::path>& begun_with, measure::MachineFacts& facts,
                                   store::Store& store, engine::EventSink& events) {
  const auto& s = ready.setting;
  auto outcome = training::train_case(s, bundle, question, ready.levels, plan, begun_with, facts, store,
                                      engine::progress_to(events));
  if (outcome) STRATA_TRY(analysis::store_metrics(store, s.run_id, key_of(question)));
  return outcome;
}

// As the run that goes on has it: what several schemes' training is not begun again for. nullopt: it has not ended.
std::optional<measure::Outcome> ended_before(const engine::Prepared& ready, const core::Case& question) {
  const auto* before = engine::stored_case(ready.setting.resumed, key_of(question));
  if (!before || !before->finished) return std::nullopt;
  measure::Outcome outcome;
  for (const auto& row : before->rows) measure::add_outcome(outcome, row, ready.setting.options.levels);
  return outcome;
}

}  // namespace

Result<data::Shape> image_shape(const nlohmann::json& inputs, const std::string& model) {
  static const auto none = nlohmann::json::object();
  const auto& input = inputs.is_array() && inputs.size() == 1 ? inputs.front() : none;
  outside::Fields reader(input, "the network's input");
  const auto shape = reader.integers("shape", 4, 1, std::numeric_limits<std::int64_t>::max());
  if (!reader.error() && outside::text_or(input, "dtype") == "float32")
    return data::Shape{shape[1], shape[2], shape[3]};
  return fail(fmt::format("{} takes no image: strata train needs one float32 input [N, C, H, W]", model),
              "compare --mode train times single steps of any network", Exit::usage);
}

Result<measure::Outcome> run_training(TrainArguments& a, engine::Prepared& ready, store::Store& store,
                                      engine::StoredRun& stored, engine::EventSink& events) {
  auto& s = ready.setting;
  auto opened = STRATA_TRY(open_data(a, s.place.cache, events));
  STRATA_TRY(check_data(a, opened));
  plan::TrainingWork work{
      .train = static_cast<std::int64_t>(opened.set.train.count),
      .test = static_cast<std::int64_t>(opened.set.test.count),
      .batch = a.batch,
      .epochs = a.epochs,
      .repeats = trainings_of(a, a.own_repeats.empty() ? a.repeats : static_cast<int>(a.own_repeats.size())),
      .proofs = a.proofs};
  scale_images(a, work);
  if (!a.scaled.empty()) {
    events.note(a.scaled);
    stored.set("scaled", a.scaled);
  }
  const auto bundle = STRATA_TRY(capture(ready, opened.set, events));
  const auto temporary = STRATA_TRY(temporary_folder(s.place.cache));
  const fs::path scratch = fs::path(temporary) / "training";
  std::error_code ec;
  fs::create_directories(scratch, ec);
  auto plan = STRATA_TRY(plan_of(a, bundle, opened, scratch));
  events.note(plan.data_note);
  const auto begun_with = STRATA_TRY(weights_of(a, bundle, scratch, s.place));
  const auto prediction = foretell(a, ready, work, bundle, opened.set);
  say_of_time(prediction, events);
  if (prediction.known && !a.resumed) stored.set("predicted_s", prediction.seconds);
  STRATA_TRY(stored.begin());
  auto facts = measure::MachineFacts::of(s.machine, s.effort.budget_s, store);
  const auto keep = store.path().parent_path() / "trainings" / s.run_id;
  measure::Outcome all;
  for (std::size_t i = 0; i < a.initials.size() && !interrupted(); ++i) {
    const auto question = question_of(a, a.initials[i], bundle, opened);
    std::optional<measure::Outcome> ended;
    plan.keep = keep;
    if (a.initials.size() > 1) {
      plan.keep /= folder_name(a.initials[i].name);
      ended = ended_before(ready, question);
      events.note(fmt::format("initialisation {} of {}: {}{}", i + 1, a.initials.size(), a.initials[i].name,
                              ended ? ": trained already" : ""));
    }
    const auto outcome = ended ? Result<measure::Outcome>(*ended)
                               : train_one(ready, bundle, question, plan, begun_with[i], facts, store, events);
    if (!outcome) {
      stored.cut_short();
      return outcome;
    }
    all.failed = all.failed || outcome->failed;
    all.missing = all.missing || outcome->missing;
  }
  return all;
}

}  // namespace strata::cli
