// SPDX-License-Identifier: Apache-2.0
// A training while it runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "analysis/metrics.hpp"
#include "common/outside.hpp"
#include "common/temporary.hpp"
#include "engine/run_case.hpp"
#include "engine/run_request.hpp"
#include "engine/training_forecast.hpp"
#include "probe/machine.hpp"
#include "report/format.hpp"
#include "training/run.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

constexpr int kSharesOfShift = 8;          // an image is moved by up to this part of its height
constexpr std::int64_t kLooksAnEpoch = 4;  // at the layers, where several schemes are compared

Result<data::CachedDataset> open_data(const TrainingPlan& plan, const fs::path& cache, EventSink& events) {
  auto options = open_options(plan, cache);
  options.threads = probe::physical_cores();
  const auto progress = progress_to(events);
  options.status = progress.status;
  options.note = progress.note;
  return data::open_dataset(plan.dataset, options);
}

Result<plan::Bundle> capture(const Prepared& ready, const data::Dataset& set, EventSink& events) {
  const auto& s = ready.setting;
  return at_size_of(set.shape, s, ready.specs.front(), [&](const core::CaseSpec& spec) {
    return plan::get_bundle(spec, s.place, s.environment, capture_options(s.options, events));
  });
}

// What is asked, beyond the step that the bundle was captured for.
core::Case question_of(const TrainingPlan& plan, const training::Initial& initial, const plan::Bundle& bundle,
                       const data::CachedDataset& opened) {
  auto question = bundle.question;
  question.data = data_name(plan, opened.set.name);
  question.recipe->training = core::Training{.epochs = plan.epochs,
                                             .init = initial.name,
                                             .augment = fmt::format("{}", fmt::join(plan.augment, ",")),
                                             .most_images = plan.images,
                                             .data_sha256 = data::content_sha256(opened)};
  return question;
}

// A training goes on with the images that it began with.
Result<void> check_data(const TrainingPlan& plan, const store::Run& resumed, const data::CachedDataset& opened) {
  const auto now = data::content_sha256(opened);
  for (const auto& before : resumed.cases) {
    const auto& recipe = before.question.recipe;
    if (!recipe || !recipe->training || recipe->training->data_sha256 == now) continue;
    return fail(fmt::format("run {} began with other images of {}: their sha256 was {}, and is {} now", resumed.run_id,
                            plan.dataset, recipe->training->data_sha256, now),
                "put the files back as they were and resume again, or start a new run", Exit::environment);
  }
  return {};
}

// What each initialisation's training does.
Result<training::Plan> course_of(const TrainingPlan& plan, const plan::Bundle& bundle,
                                 const data::CachedDataset& opened, const fs::path& scratch) {
  const auto shape = STRATA_TRY(image_shape(outside::field(bundle.info, "inputs"), bundle.question.model));
  training::Plan course;
  course.repeats = plan.repeats;
  course.own_repeats = plan.own_repeats;
  course.proofs = plan.proofs;
  course.norms = plan.norms;
  const auto has = [&](const char* word) {
    return std::find(plan.augment.begin(), plan.augment.end(), word) != plan.augment.end();
  };
  course.augment.flip = has("flip");
  if (has("crop")) course.augment.shift = static_cast<int>(std::max<std::int64_t>(1, shape.height / kSharesOfShift));
  course.data = STRATA_TRY(training::prepare_data(
      opened.set, shape, bundle.question.batch, plan.images > 0 ? std::optional(plan.images) : std::nullopt, scratch));
  if (plan.initials.size() > 1 && !plan.norms)
    course.norms = std::max<std::int64_t>(1, course.data.train / bundle.question.batch / kLooksAnEpoch);
  course.data_note = fmt::format("{}: {} images to learn from, {} to test{}", opened.set.name, course.data.train,
                                 course.data.test, course.data.change.empty() ? "" : ", " + course.data.change);
  if (const auto sha256 = data::content_sha256(opened); !sha256.empty())
    course.data_note += fmt::format("; sha256 {}", sha256);
  if (opened.facts.skipped > 0)
    course.data_note += fmt::format("; {} that cannot be read are left out", opened.facts.skipped);
  for (const auto& words : opened.facts.left_out) course.data_note += "; not taken: " + words;
  return course;
}

// Nobody shall find out by waiting.
void say_of_time(const TrainingForecast& prediction, EventSink& events) {
  constexpr double long_s = 3600;
  if (prediction.known && prediction.seconds > long_s)
    events.note(fmt::format("this takes {} ({}); --scale 0.1 does a tenth of it", report::about(prediction.seconds),
                            prediction.source()));
}

// The weights that each training begins with, by scheme and repeat; all schemes are right before anything is trained.
Result<std::vector<std::vector<fs::path>>> weights_of(const TrainingPlan& plan, const plan::Bundle& bundle,
                                                      const fs::path& scratch, const Installation& place) {
  std::vector<std::vector<fs::path>> all;
  for (const auto& initial : plan.initials) {
    const auto folder = scratch / fmt::format("initial-{}", all.size());
    std::error_code ec;  // what writes into it says it
    fs::create_directories(folder, ec);
    auto files = STRATA_TRY(training::initial_weights(bundle, initial, plan.repeats, folder, place));
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
Result<measure::Outcome> train_one(const Prepared& ready, const plan::Bundle& bundle, const core::Case& question,
                                   const training::Plan& course, const std::vector<fs::path>& begun_with,
                                   measure::MachineFacts& facts, store::Store& store, EventSink& events) {
  const auto& s = ready.setting;
  auto outcome =
      training::train_case(s, bundle, question, ready.levels, course, begun_with, facts, store, progress_to(events));
  if (outcome) STRATA_TRY(analysis::store_metrics(store, s.run_id, key_of(question)));
  return outcome;
}

// As the run that goes on has it: what several schemes' training is not begun again for. nullopt: it has not ended.
std::optional<measure::Outcome> ended_before(const Prepared& ready, const core::Case& question) {
  const auto* before = stored_case(ready.setting.resumed, key_of(question));
  if (!before || !before->finished) return std::nullopt;
  measure::Outcome outcome;
  for (const auto& row : before->rows) measure::add_outcome(outcome, row, ready.setting.options.levels);
  return outcome;
}

}  // namespace

Result<measure::Outcome> run_training(TrainingPlan& plan, const Prepared& ready, measure::MachineFacts& facts,
                                      store::Store& store, StoredRun& stored, EventSink& events) {
  const auto& s = ready.setting;
  auto opened = STRATA_TRY(open_data(plan, s.place.cache, events));
  if (s.resumed) STRATA_TRY(check_data(plan, *s.resumed, opened));
  const auto own = plan.own_repeats.size();
  const auto work =
      work_of(plan, own == 0 ? plan.repeats : static_cast<int>(own), static_cast<std::int64_t>(opened.set.train.count),
              static_cast<std::int64_t>(opened.set.test.count));
  if (!plan.scaled.empty()) {
    events.note(plan.scaled);
    stored.settings().training.scaled = plan.scaled;
  }
  const auto bundle = STRATA_TRY(capture(ready, opened.set, events));
  const auto temporary = STRATA_TRY(temporary_folder(s.place.cache));
  const fs::path scratch = fs::path(temporary) / "training";
  std::error_code ec;
  fs::create_directories(scratch, ec);
  auto course = STRATA_TRY(course_of(plan, bundle, opened, scratch));
  events.note(course.data_note);
  const auto begun_with = STRATA_TRY(weights_of(plan, bundle, scratch, s.place));
  const auto prediction = forecast_training(plan, ready, store.path(), work, bundle, opened.set.name);
  say_of_time(prediction, events);
  if (prediction.known && s.resumed == nullptr) stored.settings().predicted_s = prediction.seconds;
  STRATA_TRY(stored.begin());
  const auto keep = store.path().parent_path() / "trainings" / s.run_id;
  measure::Outcome all;
  for (std::size_t i = 0; i < plan.initials.size() && !interrupted(); ++i) {
    const auto question = question_of(plan, plan.initials[i], bundle, opened);
    std::optional<measure::Outcome> ended;
    course.keep = keep;
    if (plan.initials.size() > 1) {
      course.keep /= folder_name(plan.initials[i].name);
      ended = ended_before(ready, question);
      events.note(fmt::format("initialisation {} of {}: {}{}", i + 1, plan.initials.size(), plan.initials[i].name,
                              ended ? ": trained already" : ""));
    }
    const auto outcome = ended ? Result<measure::Outcome>(*ended)
                               : train_one(ready, bundle, question, course, begun_with[i], facts, store, events);
    if (!outcome) {
      stored.cut_short();
      return outcome;
    }
    all.failed = all.failed || outcome->failed;
    all.missing = all.missing || outcome->missing;
  }
  return all;
}

}  // namespace strata::engine
