// SPDX-License-Identifier: Apache-2.0
#include "cli/forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "cli/run_training.hpp"
#include "common/interrupt.hpp"
#include "core/bundle_info.hpp"
#include "data/cache.hpp"
#include "data/catalogue.hpp"
#include "measure/peaks.hpp"
#include "plan/axes.hpp"
#include "probe/limits.hpp"
#include "report/format.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr std::chrono::milliseconds kPeakTime{300};
constexpr double kWeightsKept = 6;  // times a network's weights: last, best, and two states with their momentum

// Newest last, so that it is what stays.
std::map<std::string, store::StepTime> stored_steps(const TrainArguments& a, const engine::Prepared& ready,
                                                    const Foretold& about) {
  std::map<std::string, store::StepTime> newest;
  const auto path = store::Store::path_of(a.store);
  if (!there_is(path)) return newest;
  const auto store = store::Store::open_existing(path);
  if (!store) return newest;  // a training says what is wrong with it
  const auto times = store->step_times(about.question, about.height, about.width, ready.setting.machine);
  for (const auto& step_time : times.value_or(std::vector<store::StepTime>())) newest[step_time.level] = step_time;
  return newest;
}

struct Estimate {
  std::optional<double> step_s;
  std::string source;
};

// For levels that were never measured: as the slowest that was; else by operations.
Estimate estimate(const std::map<std::string, store::StepTime>& steps, const Foretold& about) {
  if (!steps.empty()) {
    const auto slowest = std::max_element(steps.begin(), steps.end(),
                                          [](const auto& a, const auto& b) { return a.second.ms < b.second.ms; });
    return {slowest->second.ms * 1e-3, fmt::format("assumed: as {}, the slowest that was measured", slowest->first)};
  }
  if (about.question.device != core::Device::cpu)
    return {std::nullopt, "not known: no training of it on this GPU is stored"};
  const auto flops = about.forward_flops();
  if (!flops) return {std::nullopt, "not known: " + flops.error().what};
  const auto limits = probe::measure_limits(about.question.threads, kPeakTime);
  if (limits.gflops <= 0) return {std::nullopt, "not known: this machine's rate cannot be measured"};
  return {plan::kBesidesS + plan::step_flops(*flops, about.question.batch) / (plan::kShareOfPeak * limits.gflops * 1e9),
          fmt::format("estimated: {}FLOP a step at {:.0f}% of this machine's {:.0f} GFLOP/s",
                      report::scaled(plan::step_flops(*flops, about.question.batch)), 100 * plan::kShareOfPeak,
                      limits.gflops)};
}

struct Counts {
  std::int64_t train = 0, test = 0;
  data::Shape shape;
  std::string note;
};

// From the cache, if the set was ever read here; else as published.
Counts counts_of(const TrainArguments& a, const fs::path& cache) {
  data::OpenOptions options;
  options.data_dir = a.options.data_dir.empty() ? data::default_data_dir() : fs::path(a.options.data_dir);
  options.cache_dir = cache;
  options.make = false;
  options.partial = a.partial;
  options.skip_bad = a.options.skip_bad;
  if (const auto opened = data::open_dataset(a.dataset, options))
    return {.train = static_cast<std::int64_t>(opened->set.train.count),
            .test = static_cast<std::int64_t>(opened->set.test.count),
            .shape = opened->set.shape,
            .note = ""};
  const auto* entry = data::find_entry(a.dataset);
  if (entry == nullptr || entry->count[0] == 0)
    return {.train = 0,
            .test = 0,
            .note = fmt::format("{}: its images were not counted yet, since its files were not read here", a.dataset)};
  return {.train = static_cast<std::int64_t>(entry->count[0]),
          .test = static_cast<std::int64_t>(entry->count[1]),
          .shape = entry->shape,
          .note = fmt::format("{}: as many images as published; its files were not read here", a.dataset)};
}

// Operations of one image, by a capture for inference at batch 1: quick where that of a step is not.
Result<double> captured_flops(engine::Prepared& ready, const data::Shape& shape) {
  auto& s = ready.setting;
  ProgressLine line;
  auto single = ready.specs.front();
  single["mode"] = "infer";
  single["batch"] = 1;
  single["optimiser"] = single["loss"] = nullptr;
  const auto bundle = at_size_of(shape, s, single, [&](const Json& spec) {
    return plan::get_bundle(spec, s.place, s.environment, engine::wishes_of(s.options, line));
  });
  if (!bundle) return tl::unexpected(bundle.error());
  const auto flops = measure::flops_of(bundle->info);
  if (!flops) return fail("what the network computes is not counted");
  return *flops / static_cast<double>(std::max<std::int64_t>(1, bundle->question.batch));
}

// The weights of any captured case of this network.
double weights_of_model(const fs::path& cache, const std::string& model) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(cache / "bundles", ec)) {
    const auto question = core::case_in(entry.path());
    if (question && question->model == model) return weights_bytes(entry.path());
  }
  return 0;
}

}  // namespace

double weights_bytes(const fs::path& bundle) {
  double most = 0;
  std::error_code ec;
  for (const auto& file : fs::directory_iterator(bundle / "weights", ec)) {
    std::error_code gone;
    const auto bytes = fs::file_size(file.path(), gone);
    if (!gone) most = std::max(most, static_cast<double>(bytes));
  }
  return most;
}

std::string against_forecast(double predicted_s, double took_s) {
  const double off = 100 * (predicted_s / std::max(took_s, 1e-3) - 1);
  return fmt::format("took {:.1f} min, predicted {:.1f} min ({:.0f}% too {})", took_s / 60, predicted_s / 60,
                     std::abs(off), off < 0 ? "short" : "long");
}

std::string TrainingForecast::source() const {
  std::set<std::string> sources;
  for (const auto& level : levels) sources.insert(level.source);
  return fmt::format("{}", fmt::join(sources, "; "));
}

TrainingForecast forecast(const TrainArguments& a, const engine::Prepared& ready, const plan::TrainingWork& work,
                          const Foretold& about, const engine::Participants& who) {
  TrainingForecast out{.work = work, .without = who.without, .scaled = a.scaled};
  const auto steps = stored_steps(a, ready, about);
  std::optional<Estimate> assumed;
  out.seconds = plan::kOnceS;
  for (const auto& name : who.names) {
    LevelForecast level{.level = name};
    if (const auto known = steps.find(name); known != steps.end()) {
      level.step_s = known->second.ms * 1e-3;
      level.source = "measured in run " + known->second.run_id;
    } else {
      if (!assumed) assumed = estimate(steps, about);
      level.step_s = assumed->step_s;
      level.source = assumed->source;
    }
    if (level.step_s && work.steps() > 0) level.seconds = plan::seconds_of_level(work, *level.step_s);
    out.known = out.known && level.step_s && work.steps() > 0;
    out.seconds += level.seconds;
    out.levels.push_back(std::move(level));
  }
  if (about.weights_bytes > 0)
    out.bytes = kWeightsKept * about.weights_bytes * work.repeats * static_cast<double>(who.names.size()) +
                about.image_bytes * static_cast<double>(work.train + work.test);
  return out;
}

TrainingForecast forecast(const TrainArguments& a, engine::Prepared& ready) {
  const auto counts = counts_of(a, ready.setting.place.cache);
  plan::TrainingWork work{.train = counts.train, .test = counts.test, .batch = a.batch};
  work.epochs = a.epochs;
  work.repeats = trainings_of(a, a.repeats);
  work.proofs = a.proofs;
  auto scaled = a;
  scale_images(scaled, work);
  const auto bundle = engine::foreseen(ready.specs.front());
  Foretold about{.question = bundle.question, .image_bytes = static_cast<double>(counts.shape.bytes())};
  about.question.data = data_name(a, data::set_name(a.dataset));
  if (const auto& size = report::at(ready.specs.front(), "size"); size.is_array() && size.size() == 2) {
    about.height = size[0].get<std::int64_t>();
    about.width = size[1].get<std::int64_t>();
  }
  about.forward_flops = [&] { return captured_flops(ready, counts.shape); };
  auto out = forecast(scaled, ready, work, about, engine::participants_of(ready, bundle));
  out.note = counts.note;
  if (const double bytes = weights_of_model(ready.setting.place.cache, bundle.question.model); bytes > 0)
    out.bytes = kWeightsKept * bytes * work.repeats * static_cast<double>(out.levels.size()) +
                about.image_bytes * static_cast<double>(work.train + work.test);
  return out;
}

namespace {

Json json_of(const TrainingForecast& f) {
  Json levels = Json::array();
  for (const auto& level : f.levels)
    levels.push_back({{"level", level.level},
                      {"step_s", level.step_s ? Json(*level.step_s) : Json()},
                      {"from", level.source},
                      {"predicted_s", level.step_s ? Json(level.seconds) : Json()}});
  return {{"levels", levels},
          {"without", f.without},
          {"epochs", f.work.epochs},
          {"repeats", f.work.repeats},
          {"train_images", f.work.train},
          {"test_images", f.work.test},
          {"batch", f.work.batch},
          {"steps_an_epoch", f.work.steps()},
          {"scaled", f.scaled.empty() ? Json() : Json(f.scaled)},
          {"predicted_s", f.known ? Json(f.seconds) : Json()},
          {"disk_bytes", f.bytes > 0 ? Json(f.bytes) : Json()}};
}

int print_forecast(const TrainingForecast& f, const TrainArguments& a) {
  const auto format = report::format_from(a.format).value_or(report::Format::text);
  if (format == report::Format::json) {
    answer_json(json_of(f), 1);
    return 0;
  }
  std::vector<report::Cells> rows;
  for (const auto& level : f.levels)
    rows.push_back({level.level, level.step_s ? report::duration(*level.step_s * 1e3) : "?",
                    level.step_s && f.work.steps() > 0 ? fmt::format("{:.1f}", level.seconds / 60) : "?",
                    level.source});
  answer(report::table({"level", "step", "minutes", "from"}, rows, format));
  if (format != report::Format::text) return 0;
  answer(fmt::format("\n{} of {} step{} of {} images at {} level{}: {}{}\n",
                     f.work.epochs == 1 ? "1 epoch" : fmt::format("{} epochs", f.work.epochs), f.work.steps(),
                     f.work.steps() == 1 ? "" : "s", f.work.batch, f.levels.size(), f.levels.size() == 1 ? "" : "s",
                     f.work.repeats == 1 ? "once" : fmt::format("{} times", f.work.repeats),
                     f.known ? ", " + report::about(f.seconds) : ", of unknown length"));
  answer(f.bytes > 0 ? fmt::format("about {} on disk\n", report::size(f.bytes))
                     : std::string("disk: not known before the network is captured once\n"));
  if (!f.scaled.empty()) answer(f.scaled + "\n");
  if (!f.note.empty()) answer(f.note + "\n");
  for (const auto& why : f.without) answer("without " + why + "\n");
  return 0;
}

}  // namespace

Result<int> print_training_plan(const TrainArguments& a, engine::Prepared& ready) {
  const auto& s = ready.setting;
  const auto shape = counts_of(a, s.place.cache).shape;
  {
    ProgressLine line;
    const auto inputs = at_size_of(shape, s, ready.specs.front(), [&](const Json& spec) {
      return plan::inputs_of(spec, s.place, s.environment, engine::wishes_of(s.options, line));
    });
    if (interrupted()) return interrupt_exit_code();
    if (!inputs) return tl::unexpected(inputs.error());
    STRATA_TRY(image_shape(*inputs, engine::foreseen(ready.specs.front()).question.model));
  }
  return print_forecast(forecast(a, ready), a);
}

}  // namespace strata::cli
